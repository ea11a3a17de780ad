"""Byte ledgers: what each rank moves from and to device memory in a step, entry by entry, with the source of each figure."""
