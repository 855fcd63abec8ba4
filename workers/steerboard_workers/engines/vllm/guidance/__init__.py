"""Classifier-free guidance inside vLLM: pairs of requests that are scheduled together and get the same tokens."""
