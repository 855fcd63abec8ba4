"""The reward stage: a reward model scores responses of an evaluation, and held-out preference pairs.

Equal texts get one score, so that a tie is a tie. The pairs show how far its scores can be trusted; labelled rows,
or else the pairs themselves, define its z units. A program that knows the quality of answers is held to the same
rules, in its own units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.run_kinds.reward import RewardConfig
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

ScorablePair = tuple[Scorable, Scorable]
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
    summary = _of_pairs(stage, scorer, pairs)
    if isinstance(scorer, Scorer):
        _normalise(stage, scorer, config.seed, pairs, summary)
    output = ResponseRewardsOutput(path=stage.output_path("rewards.jsonl"), rows=rows, found=summary)
    accuracy = summary.correct / summary.pairs if summary.pairs else None
    return Succeeded(
        outputs=[output],
        summary={
            "responses": rows,
            "pairs": summary.pairs,
            "held_out_accuracy": accuracy,
            "resumed_rows": resumed_rows,
        },
    )


def _of_pairs(stage: Stage, scorer: Scorer | KnownScores, pairs: list[ScorablePair]) -> RewardSummary:
    """Their margins, and how many are right."""
    summary = RewardSummary()
    if stage.has_input("preferences"):
        summary.dataset = stage.dataset("preferences").name
    texts = [side for pair in pairs for side in pair]
    scorer.score(texts, len(texts), "held-out texts")
    summary.margins = [scorer.value(chosen) - scorer.value(rejected) for chosen, rejected in pairs]
    summary.pairs = len(pairs)
    summary.correct = sum(0.5 if margin == 0 else float(margin > 0) for margin in summary.margins)
    return summary


def _normalise(stage: Stage, scorer: Scorer, seed: int, pairs: list[ScorablePair], summary: RewardSummary) -> None:
    """Fill in a normaliser if one can be fitted, and the range of the labelled rows' rewards."""
    name, model = stage.model("reward").name, stage.model("reward").content_hash
    texts: list[Scorable] = []
    if stage.has_input("labelled"):
        labelled = Labelled(stage, seed)
        summary.normalised_by = stage.dataset("labelled").name
        if labelled.is_by(model):
            summary.normaliser = labelled.normaliser
            summary.labelled = percentiles(labelled.rewards)
            return
        texts = labelled.sample
        scorer.score(texts, len(texts), "labelled rows")
        summary.labelled = percentiles([scorer.value(text) for text in texts])
        summary.normaliser = labelled.units_of(model)
    elif pairs:
        texts = [side for pair in pairs for side in pair]
        summary.normalised_by = f"the held-out pairs of {summary.dataset}"
    if texts and summary.normaliser is None:
        try:
            summary.normaliser = Normaliser.fit([scorer.value(text) for text in texts], name, model)
        except BadInput as error:
            stage.log(f"rewards cannot be brought to z units: {error.detail}", "warning")
            summary.normalised_by = None


def _pairs(stage: Stage) -> Iterator[ScorablePair]:
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
