"""Scoring that survives kills: every text has one reward, kept by the content of its prompt and response."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from itertools import islice

from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.tools import answer_text
from steerboard_workers.engines.rewards import RewardEngine, RewardNotFinite
from steerboard_workers.stages.models.scoring import Scorable, score_batches
from steerboard_workers.stages.runtime import Stage

# Enough to sort by length, few enough to keep in memory.
BLOCK = 16_384
# How `ResumableRows` identifies the rows.
KEY = ("key",)


class Scorer:
    """Scores what has no score yet. Equal texts get one score, so that a tie is a tie."""

    def __init__(self, stage: Stage, rewards: RewardEngine, batch_tokens: int, partial: ResumableRows) -> None:
        self._stage = stage
        self._rewards = rewards
        self._batch_tokens = batch_tokens
        self._partial = partial

    def score(self, samples: Iterable[Scorable], total: int, unit: str) -> None:
        """`total` is how many there are, for the progress in `unit`. Raises `RewardNotFinite`, `BadRow`."""
        done = 0
        waiting = iter(samples)
        while block := list(islice(waiting, BLOCK)):
            left = {key: sample for sample in block if (key := _key(sample),) not in self._partial}
            done += len(block) - len(left)
            self._stage.progress(done, total, unit, f"scoring {unit}")
            keys = list(left)
            with self._stage.phases.measure("score") as phase:
                for places, values in score_batches(self._rewards, list(left.values()), self._batch_tokens, phase):
                    for place, value in zip(places, values, strict=True):
                        if not math.isfinite(value):
                            raise RewardNotFinite(
                                f"the reward of {answer_text(left[keys[place]].response)[:80]!r} is {value}",
                                hint="Score with precision fp32.",
                            )
                    self._partial.add({"key": keys[p], "value": v} for p, v in zip(places, values, strict=True))
                    done += len(places)
                    self._stage.progress(done, total, unit, f"scoring {unit}")

    def value(self, sample: Scorable) -> float:
        """The score of what was scored before."""
        return float(self._partial.rows[(_key(sample),)]["value"])


def _key(sample: Scorable) -> str:
    return hashlib.sha256(json.dumps([sample.prompt, sample.response], sort_keys=True).encode()).hexdigest()
