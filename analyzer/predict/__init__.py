"""What if: the capture as a graph of events, replayed with one thing changed (attribution contract, section 6)."""
