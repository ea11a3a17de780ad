"""Device work explained: by name, class and launch shape."""
