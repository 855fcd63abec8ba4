"""The reward stage: a reward model scores responses of an evaluation, and held-out preference pairs.

Equal texts get one score, so that a tie is a tie. The pairs tell how far its scores can be believed; labelled rows,
or else the pairs themselves, tell what its scores are in z units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from steerboard_contracts.configs import RewardConfig
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage import ResponseRewardsOutput, RewardSummary, Succeeded
from steerboard_workers.stages.evaluation.judging import MOST_PAIRS, Labelled
from steerboard_workers.stages.opening import open_reward_model
from steerboard_workers.stages.partial import PartialRows
from steerboard_workers.stages.remembered import KEY, Scorer
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.scoring import Scorable


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, RewardConfig)
    with open_reward_model(stage, "reward", config, config.precision) as rewards, PartialRows(stage, KEY) as partial:
        before = len(partial.rows)
        scorer = Scorer(stage, rewards, config.batch_tokens, partial)
        rows = sum(1 for _ in stage.evaluated("responses"))
        texts = (Scorable(row["prompt"], row["response"]) for row in stage.evaluated("responses"))
        scorer.score(texts, rows, "answers")
        with stage.output_file("rewards.jsonl") as path, path.open("w") as file:
            for row in stage.evaluated("responses"):
                value = scorer.value(Scorable(row["prompt"], row["response"]))
                kept = {"entrant": row["entrant"], "position": row["position"], "sample": row["sample"]}
                file.write(json.dumps(kept | {"value": value}) + "\n")
        found = _held_out(stage, scorer, config.seed)
    output = ResponseRewardsOutput(path=stage.output_path("rewards.jsonl"), rows=rows, found=found)
    accuracy = found.correct / found.pairs if found.pairs else None
    return Succeeded(
        outputs=[output],
        summary={"responses": rows, "pairs": found.pairs, "held_out_accuracy": accuracy, "resumed_rows": before},
    )


def _held_out(stage: Stage, scorer: Scorer, seed: int) -> RewardSummary:
    """Margins of the held-out pairs, and a normaliser where one can be fitted."""
    found = RewardSummary()
    pairs: list[tuple[Scorable, Scorable]] = []
    if stage.has_input("preferences"):
        pairs = list(_pairs(stage))
        found.dataset = stage.dataset("preferences").name
    texts = [side for pair in pairs for side in pair]
    scorer.score(texts, len(texts), "held-out texts")
    found.margins = [scorer.value(chosen) - scorer.value(rejected) for chosen, rejected in pairs]
    found.pairs = len(pairs)
    found.correct = sum(0.5 if margin == 0 else float(margin > 0) for margin in found.margins)

    name, model = stage.model("reward").name, stage.model("reward").content_hash
    if stage.has_input("labelled"):
        labelled = Labelled(stage, seed)
        found.normalised_by = stage.dataset("labelled").name
        if labelled.is_by(model):
            found.normaliser = labelled.normaliser
            return found
        texts = labelled.sample
        scorer.score(texts, len(texts), "labelled rows")
    elif texts:
        found.normalised_by = f"the held-out pairs of {found.dataset}"
    if texts:
        try:
            found.normaliser = Normaliser.fit([scorer.value(text) for text in texts], name, model)
        except BadInput as error:
            stage.log(f"rewards cannot be brought to z units: {error.detail}", "warning")
            found.normalised_by = None
    return found


def _pairs(stage: Stage) -> Iterator[tuple[Scorable, Scorable]]:
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
