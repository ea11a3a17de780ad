"""What runs beside the engine while a trace is taken. Imports nothing of the analyzer."""
