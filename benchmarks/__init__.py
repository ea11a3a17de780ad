"""Speed and memory on generated large traces. Not part of the package; see README.md."""
