"""Prompts of different lengths for the engine tests."""

from steerboard_workers.synthetic.topics import QUESTIONS, SITUATIONS, TOPICS, prompt_text

PROMPTS = [prompt_text(TOPICS[i % 14], SITUATIONS[i % 9], QUESTIONS[i % 10]) for i in range(40)]
