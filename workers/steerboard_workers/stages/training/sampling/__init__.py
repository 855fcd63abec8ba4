"""Answers sampled from the weights in training."""
