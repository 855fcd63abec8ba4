"""Models that a run reads and does not train."""
