"""Two runs: whether they did the same work, what differs in time, and what nobody can tell."""
