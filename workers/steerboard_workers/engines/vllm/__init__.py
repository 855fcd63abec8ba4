"""vLLM as an engine: its host, the process it may be in, and what is asked of it."""
