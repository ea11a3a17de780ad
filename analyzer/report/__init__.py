"""Report writing: formats what the analysis found, and computes nothing of its own."""
