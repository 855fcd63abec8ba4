"""What the reward models say: of the answers, of labelled rows, and of held-out preference pairs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard_contracts.configs import EvaluateConfig
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_statistics.paired import win_rate
from steerboard_workers.engines.rewards import RewardEngine
from steerboard_workers.stages.evaluation.answers import Entry, Prompt
from steerboard_workers.stages.opening import open_reward_model
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.scoring import Scorable, score_texts

BATCH_TOKENS = 8192
# Enough for an accuracy within a percent; more would only cost time.
MOST_PAIRS = 5000
# Rows by which the independent model's rewards are brought to z units of the labelled data.
LABELLED_SAMPLE = 1000


@dataclass(frozen=True)
class Judgement:
    """One reward model's view. `rewards[entry][prompt]` are raw; `accuracy` is None without held-out pairs.

    `labelled`: its own raw rewards of the labelled rows that it was given, `normaliser` fitted on them.
    """

    rewards: list[list[float]]
    accuracy: float | None
    pairs: int
    normaliser: Normaliser | None
    labelled: list[float]


class Labelled:
    """The labelled dataset: its rewards, their normaliser, and a sample of rows to score again."""

    def __init__(self, stage: Stage, seed: int) -> None:
        dataset = stage.dataset("labelled")
        self.rewards: list[float] = []
        self.sample: list[Scorable] = []
        rows = random.Random(seed)
        for place, row in enumerate(stage.rows("labelled")):
            if "reward" not in row:
                raise BadInput(
                    f"dataset {dataset.name} is of kind {dataset.kind}, not labelled", code="wrong_dataset_kind"
                )
            self.rewards.append(float(row["reward"]))
            item = Scorable(row["prompt"], row["response"])
            if place < LABELLED_SAMPLE:
                self.sample.append(item)
            elif (at := rows.randrange(place + 1)) < LABELLED_SAMPLE:
                self.sample[at] = item
        self.normaliser = dataset.normaliser or Normaliser.fit(self.rewards, dataset.name)

    def is_by(self, reward_model_hash: str) -> bool:
        """Whether that reward model gave the rewards; grades from elsewhere are on a scale of their own."""
        return self.normaliser.reward_model_hash == reward_model_hash


def judge(
    stage: Stage,
    name: str,
    config: EvaluateConfig,
    entries: Sequence[Entry],
    prompts: Sequence[Prompt],
    labelled: Sequence[Scorable] = (),
) -> Judgement:
    """Load reward model `name` and let it score answers, held-out pairs, and `labelled` for a normaliser of its own.

    Equal texts get one score, so that a tie is a tie.
    """
    label = f"scoring by {stage.model(name).name}"
    stage.progress(0, 1, "answers", label)
    with open_reward_model(stage, name, config, "fp32") as model:
        rewards = _score_answers(stage, model, entries, prompts, label)
        wins = [win_rate([chosen], [rejected]) for chosen, rejected in _pairs(stage, model)]
        own = score_texts(model, labelled, BATCH_TOKENS) if labelled else []
    normaliser = Normaliser.fit(own, stage.model(name).name, stage.model(name).content_hash) if own else None
    return Judgement(rewards, sum(wins) / len(wins) if wins else None, len(wins), normaliser, own)


def _score_answers(
    stage: Stage, model: RewardEngine, entries: Sequence[Entry], prompts: Sequence[Prompt], label: str
) -> list[list[float]]:
    places: dict[tuple[int, str], int] = {}
    for entry in entries:
        for row, text in enumerate(entry.texts):
            places.setdefault((row, text), len(places))
    samples = [Scorable(prompts[row], text) for row, text in places]
    scores = score_texts(
        model, samples, BATCH_TOKENS, lambda done: stage.progress(done, len(samples), "answers", label)
    )
    return [[scores[places[(row, text)]] for row, text in enumerate(entry.texts)] for entry in entries]


def _pairs(stage: Stage, model: RewardEngine) -> Iterable[tuple[float, float]]:
    """(reward of chosen, of rejected) for the held-out preference pairs."""
    if not stage.has_input("preferences"):
        return []
    sides: dict[str, Scorable] = {}
    pairs: list[tuple[str, str]] = []
    for row in stage.rows("preferences"):
        if row.get("split") != "held_out":
            continue
        keys = []
        for side in ("chosen", "rejected"):
            key = _identity(row["prompt"], row[side])
            sides.setdefault(key, Scorable(row["prompt"], row[side]))
            keys.append(key)
        pairs.append((keys[0], keys[1]))
        if len(pairs) == MOST_PAIRS:
            stage.log(f"held-out accuracy is measured on the first {MOST_PAIRS} held-out pairs")
            break
    scores = dict(zip(sides, score_texts(model, list(sides.values()), BATCH_TOKENS), strict=True))
    return [(scores[chosen], scores[rejected]) for chosen, rejected in pairs]


def _identity(prompt: Any, response: str) -> str:
    return json.dumps([prompt, response], sort_keys=True)
