"""The tools: what an agent reads, checks, starts and ends. Each is one request or a few, and a small answer."""
