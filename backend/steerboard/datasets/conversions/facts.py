"""What of each row decides which methods and conversions it is for, read in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.lookup import owner_of
from steerboard.datasets.rows.exporting import stored_rows
from steerboard.datasets.tables import Dataset, Reward, RewardSource
from steerboard_contracts.judge_prompts.verdict_prompts import is_dialogue
from steerboard_contracts.tools import answer_parts

# The identity of one answered prompt: its group where answers have one, or else its hash.
PromptKey = tuple[str, int]


class Fact(NamedTuple):
    """`dialogue`: whether user and assistant alternate in the prompt, in plain text, after at most one system turn.
    `answer`: a hash of the response, or of the chosen one, for telling equal ones in this pass. `equal_sides`: of a
    pair, without regard to the space around them."""

    row: int
    prompt: PromptKey
    prompt_hash: int
    held_out: bool
    answer: int = 0
    equal_sides: bool = False
    desirable: bool | None = None
    reward: float | None = None
    dialogue: bool = True


def read_facts(session: Session, dataset: Dataset) -> list[Fact]:
    return [
        _fact(row.row, row.prompt_hash, row.held_out, orjson.loads(row.sample), row.reward)
        for row in stored_rows(session, dataset)
    ]


def _fact(row: int, hash64: int, held_out: bool, sample: Mapping[str, Any], reward: float | None) -> Fact:
    group = sample.get("group")
    response, chosen, rejected = (sample.get(name) for name in ("response", "chosen", "rejected"))
    answer = response if response is not None else chosen
    return Fact(
        row,
        ("prompt", hash64) if group is None else ("group", group),
        hash64,
        held_out,
        hash(answer_parts(answer)) if answer is not None else 0,
        chosen is not None and rejected is not None and answer_parts(chosen) == answer_parts(rejected),
        sample.get("desirable"),
        reward,
        is_dialogue(sample["prompt"]),
    )


def with_rewards(session: Session, dataset: Dataset, source: RewardSource, facts: Sequence[Fact]) -> list[Fact]:
    """The rows with what a source gave to each; it has to have graded all."""
    query = select(Reward.row, Reward.value).where(
        Reward.dataset_id == owner_of(dataset), Reward.reward_source_id == source.id
    )
    rewards = dict(session.execute(query).all())
    return [fact._replace(reward=rewards.get(fact.row)) for fact in facts]
