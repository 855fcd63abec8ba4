"""The reward stage: a reward model scores responses of an evaluation, and held-out preference pairs.

Equal texts get one score, so that a tie is a tie. The pairs tell how far its scores can be believed; labelled rows,
or else the pairs themselves, tell what its scores are in z units.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from itertools import islice

from steerboard_contracts.configs import RewardConfig
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage import ResponseRewardsOutput, RewardSummary, Succeeded
from steerboard_workers.stages.evaluation.judging import MOST_PAIRS, Labelled
from steerboard_workers.stages.loading import RewardModel, load_reward_model
from steerboard_workers.stages.partial import PartialRows
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.score import RewardNotFinite
from steerboard_workers.stages.scoring import Scorable, score_batches

# Enough to sort by length, few enough to keep in memory.
BLOCK = 16_384


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, RewardConfig)
    stage.progress(0, 1, "models", "loading")
    reward_model = load_reward_model(stage.model_path("reward"), config.precision, stage.spec.device)
    with PartialRows(stage, ("key",)) as partial:
        before = len(partial.rows)
        scorer = _Scorer(stage, reward_model, config.batch_tokens, partial)
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


class _Scorer:
    """Scores what has no score yet, and remembers it through kills by the content of prompt and response."""

    def __init__(self, stage: Stage, reward_model: RewardModel, batch_tokens: int, partial: PartialRows) -> None:
        self._stage = stage
        self._reward_model = reward_model
        self._batch_tokens = batch_tokens
        self._partial = partial

    def score(self, samples: Iterable[Scorable], total: int, unit: str) -> None:
        """`total` is how many there are, for the progress in `unit`."""
        done = 0
        waiting = iter(samples)
        while block := list(islice(waiting, BLOCK)):
            left = {key: sample for sample in block if (key := _key(sample),) not in self._partial}
            done += len(block) - len(left)
            self._stage.progress(done, total, unit, f"scoring {unit}")
            keys = list(left)
            for places, values in score_batches(self._reward_model, list(left.values()), self._batch_tokens):
                for place, value in zip(places, values, strict=True):
                    if not math.isfinite(value):
                        raise RewardNotFinite(
                            f"the reward of {left[keys[place]].response[:80]!r} is {value}",
                            hint="Score with precision fp32.",
                        )
                self._partial.add({"key": keys[p], "value": v} for p, v in zip(places, values, strict=True))
                done += len(places)
                self._stage.progress(done, total, unit, f"scoring {unit}")

    def value(self, sample: Scorable) -> float:
        return float(self._partial.rows[(_key(sample),)]["value"])


def _key(sample: Scorable) -> str:
    return hashlib.sha256(json.dumps([sample.prompt, sample.response], sort_keys=True).encode()).hexdigest()


def _held_out(stage: Stage, scorer: _Scorer, seed: int) -> RewardSummary:
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
