"""Arithmetic on a few figures that needs no trace."""
