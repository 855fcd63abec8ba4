"""Checkpoints of a run in the artifact store, for another machine to resume from."""
