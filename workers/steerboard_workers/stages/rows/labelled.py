"""The rows that someone gave rewards, as what z units of a reward model are of."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage.outputs import RewardPercentiles
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.runtime import Stage

# Rows by which another reward model's rewards are brought to z units of the labelled data.
SAMPLE = 1000


class Labelled:
    """The labelled dataset: its rewards, their normaliser, and a sample of rows to score again.

    Rows may have attributes only, which are sampled like others; without any reward there is no normaliser.
    """

    def __init__(self, stage: Stage, seed: int) -> None:
        dataset = stage.dataset("labelled")
        self.rewards: list[float] = []
        self.sample: list[Scorable] = []
        rows = random.Random(seed)
        for place, row in enumerate(stage.rows("labelled")):
            if "reward" not in row and dataset.kind != "labelled":
                raise BadInput(
                    f"dataset {dataset.name} is of kind {dataset.kind}, not labelled", code="wrong_dataset_kind"
                )
            if "reward" in row:
                self.rewards.append(float(row["reward"]))
            item = Scorable(row["prompt"], row["response"])
            if place < SAMPLE:
                self.sample.append(item)
            elif (at := rows.randrange(place + 1)) < SAMPLE:
                self.sample[at] = item
        fitted = Normaliser.fit(self.rewards, dataset.name) if self.rewards and dataset.normaliser is None else None
        self.normaliser = dataset.normaliser or fitted

    def is_by(self, reward_model_hash: str) -> bool:
        """Whether that reward model gave the rewards; grades from elsewhere are on a scale of their own."""
        return self.normaliser is not None and self.normaliser.reward_model_hash == reward_model_hash

    def units_of(self, reward_model_hash: str) -> Normaliser | None:
        """What brought that model's rewards to z units, where they are a part of the labelled rows' rewards."""
        return self.normaliser.of_model(reward_model_hash) if self.normaliser is not None else None


def percentiles(rewards: Sequence[float]) -> RewardPercentiles | None:
    """Returns None without rewards."""
    if not rewards:
        return None
    low, p20, p50, p80, high = (float(p) for p in np.percentile(np.asarray(rewards), [0.1, 20, 50, 80, 99.9]))
    return RewardPercentiles(n=len(rewards), p0_1=low, p20=p20, p50=p50, p80=p80, p99_9=high)
