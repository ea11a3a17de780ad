"""Readers: from a file to the traces of the event model; they know nothing of later stages."""
