"""The reward stage: a reward model scores responses of an evaluation, and held-out preference pairs.

Equal texts get one score, so that a tie is a tie. The pairs show how far its scores can be trusted; labelled rows,
or else the pairs themselves, define its z units. A program that knows the quality of answers is held to the same
rules, in its own units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from steerboard_contracts.configs.reward import RewardConfig
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import ResponseRewardsOutput, RewardSummary
from steerboard_workers.stages.models.open_models import open_reward_model
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.rows.cached_scoring import KEY, Scorer
from steerboard_workers.stages.rows.known_quality import KnownScores
from steerboard_workers.stages.rows.labelled import Labelled, percentiles
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage

# Enough for an accuracy within a percent; more would only cost time.
MOST_PAIRS = 5000

Pair = tuple[Scorable, Scorable]
"""Chosen and rejected."""


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, RewardConfig)
    if config.quality is not None:
        return _scored(stage, config, KnownScores(stage, config.quality), resumed_rows=0)
    with open_reward_model(stage, "reward", config, config.precision) as rewards, resumable_rows(stage, KEY) as partial:
        scorer = Scorer(stage, rewards, config.batch_tokens, partial)
        return _scored(stage, config, scorer, resumed_rows=len(partial.rows))


def _scored(stage: Stage, config: RewardConfig, scorer: Scorer | KnownScores, resumed_rows: int) -> Succeeded:
    rows = sum(1 for _ in stage.evaluated("responses"))
    texts = (Scorable(row["prompt"], row["response"]) for row in stage.evaluated("responses"))
    scorer.score(texts, rows, "answers")
    with stage.output_file("rewards.jsonl") as path, path.open("w") as file:
        for row in stage.evaluated("responses"):
            value = scorer.value(Scorable(row["prompt"], row["response"]))
            kept = {"entrant": row["entrant"], "position": row["position"], "sample": row["sample"]}
            file.write(json.dumps(kept | {"value": value}) + "\n")
    pairs = list(_pairs(stage)) if stage.has_input("preferences") else []
    found = _of_pairs(stage, scorer, pairs)
    if isinstance(scorer, Scorer):
        _normalise(stage, scorer, config.seed, pairs, found)
    output = ResponseRewardsOutput(path=stage.output_path("rewards.jsonl"), rows=rows, found=found)
    accuracy = found.correct / found.pairs if found.pairs else None
    return Succeeded(
        outputs=[output],
        summary={
            "responses": rows,
            "pairs": found.pairs,
            "held_out_accuracy": accuracy,
            "resumed_rows": resumed_rows,
        },
    )


def _of_pairs(stage: Stage, scorer: Scorer | KnownScores, pairs: list[Pair]) -> RewardSummary:
    """Their margins, and how many are right."""
    found = RewardSummary()
    if stage.has_input("preferences"):
        found.dataset = stage.dataset("preferences").name
    texts = [side for pair in pairs for side in pair]
    scorer.score(texts, len(texts), "held-out texts")
    found.margins = [scorer.value(chosen) - scorer.value(rejected) for chosen, rejected in pairs]
    found.pairs = len(pairs)
    found.correct = sum(0.5 if margin == 0 else float(margin > 0) for margin in found.margins)
    return found


def _normalise(stage: Stage, scorer: Scorer, seed: int, pairs: list[Pair], found: RewardSummary) -> None:
    """Fill in a normaliser if one can be fitted, and the range of the labelled rows' rewards."""
    name, model = stage.model("reward").name, stage.model("reward").content_hash
    texts: list[Scorable] = []
    if stage.has_input("labelled"):
        labelled = Labelled(stage, seed)
        found.normalised_by = stage.dataset("labelled").name
        if labelled.is_by(model):
            found.normaliser = labelled.normaliser
            found.labelled = percentiles(labelled.rewards)
            return
        texts = labelled.sample
        scorer.score(texts, len(texts), "labelled rows")
        found.labelled = percentiles([scorer.value(text) for text in texts])
        found.normaliser = labelled.units_of(model)
    elif pairs:
        texts = [side for pair in pairs for side in pair]
        found.normalised_by = f"the held-out pairs of {found.dataset}"
    if texts and found.normaliser is None:
        try:
            found.normaliser = Normaliser.fit([scorer.value(text) for text in texts], name, model)
        except BadInput as error:
            stage.log(f"rewards cannot be brought to z units: {error.detail}", "warning")
            found.normalised_by = None


def _pairs(stage: Stage) -> Iterator[Pair]:
    """The held-out pairs, the first `MOST_PAIRS` of them."""
    count = 0
    for row in stage.rows("preferences"):
        if row.get("split") != "held_out":
            continue
        if count == MOST_PAIRS:
            stage.log(f"held-out accuracy is measured on the first {MOST_PAIRS} held-out pairs")
            return
        yield Scorable(row["prompt"], row["chosen"]), Scorable(row["prompt"], row["rejected"])
        count += 1
