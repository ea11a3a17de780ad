"""Byte ledgers: what each rank moves from and to device memory in a step, each figure with its source."""
