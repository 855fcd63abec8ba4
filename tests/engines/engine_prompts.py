"""Prompts of different lengths for the engine tests."""

from steerboard_workers.synthetic.topics import QUESTIONS, SITUATIONS, TOPICS, prompt_text


def _of(things, i):
    return things[i % len(things)]


PROMPTS = [prompt_text(_of(TOPICS, i), _of(SITUATIONS, i), _of(QUESTIONS, i)) for i in range(40)]

# From a part of vLLM's smallest block of the cache (32 tokens) to three of them.
TEXTS = [" ".join((PROMPTS * 2)[row : row + 1 + row % 4]) for row in range(len(PROMPTS))]
