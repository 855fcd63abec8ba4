"""Prompts that ask which of two answers is better, as a judge of the style `pairwise` is asked.

A model that learns to answer them, by the rule that its verdict is right, is a generative reward model
(arXiv 2410.12832; with both orders of a pair, arXiv 2505.10320).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from steerboard_contracts.judge_prompts import fastchat_prompts

# An answer with one verdict, perhaps repeated, and no other; group 1 is the letter.
VERDICT = r"(?s)\A(?:(?!\[\[[ABC]\]\]).)*\[\[([AB])\]\](?:(?!\[\[(?!\1)[ABC]\]\]).)*\Z"


def is_dialogue(prompt: Sequence[Mapping[str, Any]]) -> bool:
    """Whether user and assistant alternate, in plain text, from the user to the user, after at most one system turn."""
    roles = [turn["role"] for turn in prompt]
    turns = roles[1:] if roles[:1] == ["system"] else roles
    expected = ["user", "assistant"] * (len(turns) // 2) + ["user"]
    return turns == expected and all(turn.get("content") and not turn.get("tool_calls") for turn in prompt)


def verdict_prompt(
    prompt: Sequence[Mapping[str, Any]], chosen: str, rejected: str, letter: Literal["A", "B"]
) -> list[dict[str, str]]:
    """A system and a user turn; the chosen answer is the assistant's of that letter. A system turn of the prompt is put
    before its first question."""
    begin = f"{prompt[0]['content']}\n\n" if prompt[0]["role"] == "system" else ""
    questions = [turn["content"] for turn in prompt if turn["role"] == "user"]
    questions[0] = begin + questions[0]
    earlier = [turn["content"] for turn in prompt if turn["role"] == "assistant"]
    a, b = (chosen, rejected) if letter == "A" else (rejected, chosen)
    system, user = fastchat_prompts.pairwise(questions, [*earlier, a], [*earlier, b], None)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]
