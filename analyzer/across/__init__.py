"""Several ranks on one clock: which collectives belong together, who was late, one path across all."""
