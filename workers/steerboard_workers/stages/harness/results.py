"""Turns the harness's results into ours: every metric by every filter, with the score of each item.

Two results are compared item by item only where the hashes of all that decides a score are equal; see `likeness`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steerboard_contracts.report.academic import AcademicFigure, AcademicTask, figure_names
from steerboard_statistics.benchmarks.academic import mean_of
from steerboard_workers.stages.harness.likeness import Prompts, asked_hash, items_hash, scored_hash
from steerboard_workers.stages.harness.tasks import Loaded

_ROUNDING = 1e-9


def tasks_of(results: Mapping[str, Any], loaded: Loaded, prompts: Prompts, template: bool) -> Iterator[AcademicTask]:
    """The tasks in what `evaluate` gives for one name: the group that it is, or else each of its tasks."""
    name, group = loaded.name, loaded.groups.get(loaded.name)
    if group is not None and _figures(results["results"].get(name, {})):
        parts = sorted(task.task_name for task in group.get_all_tasks())
        yield _task(results, loaded, prompts, name, parts, template, group=True)
        return
    for task in sorted(results["samples"]):
        yield _task(results, loaded, prompts, task, [task], template, group=False)


def _task(
    results: Mapping[str, Any],
    loaded: Loaded,
    prompts: Prompts,
    name: str,
    parts: list[str],
    template: bool,
    *,
    group: bool,
) -> AcademicTask:
    row = results["results"][name]
    keys = _figures(row)
    figures = []
    for (metric, filter_), short in zip(keys, figure_names(keys), strict=True):
        value, stderr = float(row[f"{metric},{filter_}"]), row.get(f"{metric}_stderr,{filter_}")
        scores = [score for part in parts for score in _scores(results["samples"][part], metric, filter_)]
        # A metric that is not a mean over items, such as a corpus BLEU, has no score for an item.
        if not scores or abs(math.fsum(scores) / len(scores) - value) > _ROUNDING:
            scores = []
        figures.append(
            AcademicFigure(
                name=short,
                metric=metric,
                filter=filter_,
                value=value,
                stderr=float(stderr) if isinstance(stderr, int | float) else None,
                higher_is_better=results["higher_is_better"].get(name, {}).get(metric),
                interval=mean_of(scores) if scores else None,
                scores=scores,
            )
        )
    samples, version = [results["samples"][part] for part in parts], results["versions"].get(name)
    return AcademicTask(
        task=name,
        version=None if version is None else str(version),
        shots=results["n-shot"].get(name),
        template=template,
        items=sum(results["n-samples"][part]["effective"] for part in parts),
        of=sum(results["n-samples"][part]["original"] for part in parts),
        parts=len(parts) if group else 0,
        items_hash=items_hash(samples),
        asked_hash=asked_hash(samples, prompts),
        scored_hash=scored_hash(loaded.tasks[part] for part in parts),
        figures=figures,
    )


def _figures(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(metric, filter) of a row of results, in its order."""
    keys = [tuple(key.split(",", 1)) for key, value in row.items() if "," in key and isinstance(value, int | float)]
    return [(metric, filter_) for metric, filter_ in keys if not metric.endswith("_stderr")]


def _scores(samples: Sequence[Mapping[str, Any]], metric: str, filter_: str) -> list[int | float]:
    """The score of each item, in order; empty where an item has none that is a number."""
    mine = sorted((sample for sample in samples if sample["filter"] == filter_), key=lambda sample: sample["doc_id"])
    values: list[Any] = [sample.get(metric) for sample in mine]
    if any(not isinstance(value, int | float) and not hasattr(value, "item") for value in values):
        return []
    numbers = [float(value) for value in values]
    return [int(number) if number in (0, 1) else number for number in numbers]
