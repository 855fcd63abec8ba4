"""What methods share that learn from rewards of their own answers: advantages, divergences and losses, as pure
functions of numbers. Nothing here knows models, examples or methods."""
