"""The rules by which pairs are dropped: what each is called, and those that need to see one pair only."""

from __future__ import annotations

import unicodedata
from typing import Any, Literal, get_args

from steerboard_contracts.tools import answer_parts, answer_text, turn_text

Rule = Literal[
    "empty_round",
    "wrong_roles",
    "identical_sides",
    "small_margin",
    "evaluation_overlap",
    "contradiction",
    "duplicate",
    "near_duplicate",
]
# Why a version lacks a row: a rule, or a person who marked it.
Reason = Rule | Literal["marked"]
# In this order; a row is dropped by the first rule that fits. Rules of one row come first: those that compare rows see
# what is left, and a contradiction is settled by all its votes before equal rows become one.
RULES: tuple[Rule, ...] = get_args(Rule)

TITLES: dict[Rule, str] = {
    "empty_round": "a turn or an answer has no visible text",
    "wrong_roles": "user and assistant do not take turns",
    "identical_sides": "chosen and rejected are the same text",
    "small_margin": "the margin is below the threshold",
    "evaluation_overlap": "the prompt occurs in an evaluation",
    "contradiction": "the same answers are preferred the other way round at least as often",
    "duplicate": "an earlier row is the same",
    "near_duplicate": "an earlier row is nearly the same",
}


def has_empty_round(sample: dict[str, Any]) -> bool:
    """Whether a turn or an answer has nothing to read: spaces, control and formatting characters only. A tool's result
    may be empty."""
    told = (turn_text(turn) for turn in sample["prompt"] if turn["role"] != "tool")
    texts = [*told, answer_text(sample["chosen"]), answer_text(sample["rejected"])]
    return not all(map(_is_visible, texts))


def has_wrong_roles(sample: dict[str, Any]) -> bool:
    """Whether the prompt is anything else than user and assistant in turns, from user to user, after a system turn. An
    assistant that calls tools has its turn before their results and after them."""
    all_roles = [turn["role"] for turn in sample["prompt"]]
    # A result, and the turn that leads to it, begin an answer.
    before_result = [after == "tool" for after in [*all_roles[1:], None]]
    roles = [role for role, leads in zip(all_roles, before_result, strict=True) if role != "tool" and not leads]
    spoken = roles[1:] if roles[:1] == ["system"] else roles
    return spoken != (["user", "assistant"] * len(spoken))[: len(spoken)] or len(spoken) % 2 == 0


def has_identical_sides(sample: dict[str, Any]) -> bool:
    """Surrounding spaces apart."""
    return answer_parts(sample["chosen"]) == answer_parts(sample["rejected"])


def has_small_margin(sample: dict[str, Any], min_margin: float) -> bool:
    """A pair without a margin is kept."""
    margin = sample.get("margin")
    return margin is not None and margin < min_margin


def _is_visible(text: str) -> bool:
    # Nearly every text begins with a letter or two.
    return text[:1].isalnum() or any(unicodedata.category(character)[0] not in "ZC" for character in text)
