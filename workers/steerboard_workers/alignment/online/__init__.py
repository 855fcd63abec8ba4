"""Methods that learn by policy gradient from rewards of their own answers: rewards, batches and the objective."""
