"""Speculative decoding as measured: accepted drafts per verification, and what they gain at measured step times."""
