"""What happened: launches matched, clocks corrected, steps found, the critical path and exposed time."""
