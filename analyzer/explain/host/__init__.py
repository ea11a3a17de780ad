"""CPU time on the path explained: who, where, what to look at first."""
