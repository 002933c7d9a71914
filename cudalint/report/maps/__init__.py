"""Maps of processes in several formats."""
