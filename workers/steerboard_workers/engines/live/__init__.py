"""vLLM for a model in training: a process of its own, which gets the current weights before each sampling."""
