"""The parent of stage processes: it has imported what they use, and forks (ADR 0015)."""
