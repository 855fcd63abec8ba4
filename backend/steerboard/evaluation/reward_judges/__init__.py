"""Judges whose verdicts are rewards of answers that a run in training samples."""
