"""Parts of the evaluate stage: the answers, what the reward models say of them, and the statistics."""
