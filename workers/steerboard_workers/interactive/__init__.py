"""The playground's worker: keeps recently used models loaded and never waits for training."""
