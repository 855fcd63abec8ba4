"""How two datasets of one kind differ, row by row."""
