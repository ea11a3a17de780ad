"""What several ranks say together: per-rank results on one clock, collectives, the global path, late ranks."""
