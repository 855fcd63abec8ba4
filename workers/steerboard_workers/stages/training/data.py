"""Rows become examples as a method has it: select first, tokenise what is left, drop what cannot fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steerboard_contracts.conversions import how_to_convert
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.methods import needed_method
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.warnings import RunWarning, rows_too_long
from steerboard_workers.alignment.condition_variants import ConditionVariants, variants_of
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.rendering.render import Renderer, UnrenderableRows
from steerboard_workers.alignment.training_method import Row, TrainingMethod
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.condition_gain import gain_rows

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
    warnings: list[RunWarning] = field(default_factory=list)
    # Held-out answers under other conditions, of a method whose policies take one.
    variants: ConditionVariants | None = None

    @property
    def evaluated(self) -> int:
        """Examples that an evaluation reads, those of the gain by the condition included."""
        return len(self.held_out) + (self.variants.at_each_evaluation if self.variants is not None else 0)


def load_further(stage: Stage, config: TrainingConfig, renderer: Renderer) -> dict[str, TrainingData]:
    """Each further dataset, by name, that the config uses. Raises what `load_data` does."""
    used = [further for further in needed_method(config.method).further_data if further.used_by(config)]
    return {further.name: load_data(stage, TrainingMethod(config), renderer, further.name) for further in used}


def load_data(stage: Stage, method: TrainingMethod[Any], renderer: Renderer, name: str = "data") -> TrainingData:
    """The data of the input `name`. Raises `EmptySelection` when nothing is left to train on, `UnrenderableRows` with
    all rows that the template refuses, and `BadInput` for a dataset of the wrong kind and, under `too_long: refuse`,
    for rows that would be cut or do not fit at all."""
    dataset, config = stage.dataset(name), method.config
    selection = method.select(list(rows_of(stage, name, method)), dataset)
    for note in selection.notes:
        stage.log(note)
    for warning in selection.warnings:
        stage.log(warning, "warning")
    train = [row for row in selection.rows if row["split"] != "held_out"]
    held_out = [row for row in selection.rows if row["split"] == "held_out"]
    held_out = _sample(held_out, config.evaluate_rows, config.seed)
    if not train:
        raise EmptySelection(f"no training rows are left of {dataset.name}", hint=method.nothing_left())
    data = TrainingData([], [], 0.0, selection.summary, selection.info, selection.metrics)
    total = len(train) + len(held_out)
    too_long: list[int] = []
    refused: dict[int, BadInput] = {}
    for rows, examples, before in ((train, data.train, 0), (held_out, data.held_out, len(train))):
        for start in range(0, len(rows), RENDER_ROWS):
            part = rows[start : start + RENDER_ROWS]
            examples += examples_of(method, renderer, part, start, too_long, refused)
            stage.progress(before + start + len(part), total, "rows", "tokenising")
    if refused:
        raise UnrenderableRows(refused, total, dataset.name)
    if too_long and config.too_long == "refuse":
        raise BadInput(
            f"{len(too_long)} of {total} rows of {dataset.name} have more than {renderer.max_length} tokens; the first "
            f"of them is row {too_long[0]}",
            code="rows_too_long",
            hint="Raise max_length, or set too_long to truncate or drop.",
        )
    if limit := gain_rows(config):
        data.variants = variants_of(method, renderer, held_out, limit, config.seed)
        if data.variants is not None:
            data.summary["condition_gain_prompts"] = len(set(data.variants.prompts))
    if data.train:
        method.relate(data.train, data.held_out, renderer.max_length)
    if not data.train:
        raise EmptySelection(
            f"none of {len(train)} rows fits into {renderer.max_length} tokens",
            hint="Raise max_length" + (", or set too_long to truncate." if config.too_long == "drop" else "."),
        )
    dropped = total - len(data.train) - len(data.held_out)
    data.dropped = dropped / total
    cut = sum(e.truncated for e in data.train)
    truncated = cut / len(data.train)
    data.summary |= {"rows": len(data.train), "dropped": data.dropped, "truncated": truncated}
    if renderer.template.name == "chat" and renderer.template.chat.day is not None:
        data.summary["template_day"] = renderer.template.chat.day.isoformat()
        stage.log(f"the chat template writes today's date: it gets {data.summary['template_day']}, the run's first day")
    data.summary |= {"dropped_rows": dropped, "truncated_rows": cut, "too_long_rows": len(too_long)}
    stage.log(
        f"{dataset.name}: {len(data.train)} training and {len(data.held_out)} held-out rows, "
        f"{truncated:.1%} truncated, {data.dropped:.1%} dropped"
    )
    cut_of_all = cut + sum(e.truncated for e in data.held_out)
    lost = rows_too_long(dataset.name, total, cut_of_all, len(too_long) - cut_of_all, renderer.max_length)
    if lost is not None:
        data.warnings.append(lost)
    return data


def examples_of(
    method: TrainingMethod[Any],
    renderer: Renderer,
    rows: list[Row],
    start: int,
    too_long: list[int],
    refused: dict[int, BadInput],
) -> Iterator[Example]:
    """`start` numbers rows that have no number of their own. Those that do not fit are left out; numbers of all that do
    not fit whole go into `too_long`, and those that the template cannot write into `refused`."""
    try:
        groups = method.render(renderer, rows)
    except UnrenderableRows as error:
        refused |= {int(rows[place].get("row", start + place)): fault for place, fault in error.faults.items()}
        return
    for place, (row, group) in enumerate(zip(rows, groups, strict=True)):
        number = int(row.get("row", start + place))
        if group is None or group.truncated:
            too_long.append(number)
            if method.config.too_long != "truncate":
                continue
        example = group and method.example(number, row, group)
        if example:
            yield example


def rows_of(stage: Stage, name: str, method: TrainingMethod[Any]) -> Iterator[Row]:
    dataset, spec = stage.dataset(name), needed_method(method.config.method)
    kinds = next((further.kinds for further in spec.further_data if further.name == name), spec.data)
    for row in stage.rows(name):
        for field_name in method.fields:
            # The method names rows without a reward.
            if field_name not in row and not (field_name == "reward" and dataset.kind == "labelled"):
                raise BadInput(
                    f"dataset {dataset.name} is of kind {dataset.kind} and has no {field_name}, which this method "
                    "needs",
                    code="wrong_dataset_kind",
                    hint=how_to_convert(dataset.name, dataset.kind, kinds)
                    or f"Give a dataset of kind {' or '.join(kinds)}.",
                )
        row.setdefault("split", "train")
        row.setdefault("half", "a")
        yield row


def _sample(rows: list[Row], limit: int, seed: int) -> list[Row]:
    """A sample of `limit` rows at most, drawn once for the whole run, in their order."""
    if len(rows) <= limit:
        return rows
    generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, 2**63]))
    return [rows[i] for i in sorted(generator.choice(len(rows), limit, replace=False))]
