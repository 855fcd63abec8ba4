"""Rows become examples, one function a family of methods: select first, tokenise what is left, drop what cannot fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steerboard_contracts.errors import BadInput, BadRow, EmptySelection
from steerboard_contracts.prompts import Normaliser, ScoreFormat, ScoreScale
from steerboard_contracts.training import (
    DecisionTransformerConfig,
    MleFilterConfig,
    RewardModelConfig,
    RwrConfig,
    TrainingConfig,
)
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import effective_sample_size, rwr_weight
from steerboard_workers.alignment.render import Renderer
from steerboard_workers.stages.runtime import Stage

RENDER_ROWS = 512


@dataclass
class TrainingData:
    """Examples of both splits. `summary` goes into the run's summary, `info` into the model's steerboard.json."""

    train: list[Example]
    held_out: list[Example]
    dropped: float
    summary: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    # Figures of the whole training data, emitted with the first step.
    metrics: dict[str, float] = field(default_factory=dict)


Row = dict[str, Any]


def load_data(stage: Stage, config: TrainingConfig, renderer: Renderer) -> TrainingData:
    """Raises `EmptySelection` when nothing is left to train on, `BadInput` for a dataset of the wrong kind."""
    if isinstance(config, RewardModelConfig):
        return _pairs(stage, config, renderer)
    if isinstance(config, MleFilterConfig | RwrConfig | DecisionTransformerConfig):
        return _labelled(stage, config, renderer)
    return _finish(stage, config, renderer, list(_rows(stage, "prompt", "response")), TrainingData([], [], 0.0))


def _pairs(stage: Stage, config: RewardModelConfig, renderer: Renderer) -> TrainingData:
    rows = list(_rows(stage, "prompt", "chosen", "rejected"))
    if config.half is not None:
        rows = [r for r in rows if r["split"] == "held_out" or r["half"] == config.half]
    return _finish(stage, config, renderer, rows, TrainingData([], [], 0.0), sides=("chosen", "rejected"))


def _labelled(
    stage: Stage, config: MleFilterConfig | RwrConfig | DecisionTransformerConfig, renderer: Renderer
) -> TrainingData:
    dataset = stage.dataset("data")
    rows = list(_rows(stage, "prompt", "response", "reward"))
    if not rows:
        raise EmptySelection(f"dataset {dataset.name} has no rows", hint="Label some rows first.")
    rewards = [float(row["reward"]) for row in rows]
    normaliser = dataset.normaliser or Normaliser.fit(rewards, dataset.name)
    data = TrainingData([], [], 0.0, info={"normaliser": normaliser})
    for row, reward in zip(rows, rewards, strict=True):
        row["z"] = normaliser.z(reward)
    if isinstance(config, MleFilterConfig):
        kept = [row for row in rows if row["z"] > config.threshold]
        _count_kept(stage, data, rows, kept, config.threshold)
        return _finish(stage, config, renderer, kept, data)
    if isinstance(config, RwrConfig):
        weights = [rwr_weight(row["z"], config.beta, config.max_weight) for row in rows]
        size = effective_sample_size(weights)
        stage.log(f"weights exp(z / {config.beta:g}): effective sample size {size:.1%}, largest {max(weights):.3g}")
        data.summary["effective_sample_size"] = size
        by_row = {id(row): weight for row, weight in zip(rows, weights, strict=True)}
        return _finish(stage, config, renderer, rows, data, weight=lambda row: by_row[id(row)])
    scale = ScoreScale.fit(config.score_scale, rewards, normaliser, config.score_limit)
    form = ScoreFormat(limit=config.score_limit, step=config.score_step)
    data.info |= {"score_format": form, "score_scale": scale, "default_score": config.default_score}
    return _finish(stage, config, renderer, rows, data, score=lambda row: form.text(scale.score(row["reward"])))


def _count_kept(stage: Stage, data: TrainingData, rows: list[Row], kept: list[Row], threshold: float) -> None:
    all_by_source = Counter(str(row.get("source") or "all") for row in rows)
    kept_by_source = Counter(str(row.get("source") or "all") for row in kept)
    data.metrics["kept"] = len(kept) / len(rows)
    for source, n in sorted(all_by_source.items()):
        data.metrics[f"kept.{source}"] = kept_by_source[source] / n
    shares = ", ".join(f"{s} {kept_by_source[s]} of {n}" for s, n in sorted(all_by_source.items()))
    stage.log(f"kept {len(kept)} of {len(rows)} rows with z > {threshold:g} ({shares})")
    data.summary |= data.metrics


def _rows(stage: Stage, *fields: str) -> Iterator[Row]:
    dataset = stage.dataset("data")
    for row in stage.rows("data"):
        for name in fields:
            if name not in row:
                raise BadInput(
                    f"dataset {dataset.name} is of kind {dataset.kind} and has no {name}, which this method needs",
                    code="wrong_dataset_kind",
                )
        if "reward" in fields and not np.isfinite(row["reward"]):
            raise BadRow(f"dataset {dataset.name}: the reward of row {row.get('row')} is not a finite number")
        row.setdefault("split", "train")
        row.setdefault("half", "a")
        yield row


def _finish(
    stage: Stage,
    config: TrainingConfig,
    renderer: Renderer,
    rows: list[Row],
    data: TrainingData,
    *,
    sides: tuple[str, ...] = ("response",),
    score: Callable[[Row], str] | None = None,
    weight: Callable[[Row], float] = lambda row: 1.0,
) -> TrainingData:
    train = [row for row in rows if row["split"] != "held_out"]
    held_out = _sample([row for row in rows if row["split"] == "held_out"], config.evaluate_rows, config.seed)
    if not train:
        raise EmptySelection(
            f"no training rows are left of {stage.dataset('data').name}",
            hint="Lower the threshold, or give more data.",
        )
    total = len(train) + len(held_out)
    done = 0
    for chosen, examples in ((train, data.train), (held_out, data.held_out)):
        for start in range(0, len(chosen), RENDER_ROWS):
            part = chosen[start : start + RENDER_ROWS]
            groups = renderer.render_groups(
                [row["prompt"] for row in part],
                [[row[side] for side in sides] for row in part],
                [score(row) for row in part] if score else None,
            )
            for place, (row, group) in enumerate(zip(part, groups, strict=True)):
                if group is not None:
                    number = int(row.get("row", start + place))
                    margin = float(row.get("margin") or 0.0)
                    examples.append(Example.of(number, group, weight=weight(row), margin=margin))
            done += len(part)
            stage.progress(done, total, "rows", "tokenising")
    if not data.train:
        raise EmptySelection(
            f"none of {len(train)} rows fits into {renderer.max_length} tokens", hint="Raise max_length."
        )
    data.dropped = (total - len(data.train) - len(data.held_out)) / total
    truncated = sum(e.truncated for e in data.train) / len(data.train)
    data.summary |= {"rows": len(data.train), "dropped": data.dropped, "truncated": truncated}
    stage.log(
        f"{len(data.train)} training and {len(data.held_out)} held-out rows, "
        f"{truncated:.1%} truncated, {data.dropped:.1%} dropped"
    )
    return data


def _sample(rows: list[Row], limit: int, seed: int) -> list[Row]:
    """At most `limit` rows, drawn once for the whole run, in their order."""
    if len(rows) <= limit:
        return rows
    generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, 2**63]))
    return [rows[i] for i in sorted(generator.choice(len(rows), limit, replace=False))]
