"""The training stage's parts: data, set-up, loop, checkpoints, final folder."""
