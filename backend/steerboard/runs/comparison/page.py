"""Runs side by side as a frozen page: results, costs, the settings that differ, and curves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from math import isfinite

from sqlalchemy.orm import Session

from steerboard.runs import queries
from steerboard.runs.comparison.schemas import MOST_METRICS
from steerboard.runs.comparison.wording import in_words, time
from steerboard.runs.results.metric_curves import metrics
from steerboard.runs.schemas.runs import RunDetail
from steerboard.runs.tables import Run
from steerboard.sharing.blocks import Cell, Grid
from steerboard.sharing.frozen import Chart, FrozenPage, Line

_POINTS = 200
_NONE = "–"


def page_of_runs(session: Session, runs: Sequence[Run], names: Sequence[str]) -> FrozenPage:
    """`names`: of the metrics whose curves it has; of none given, the first of the runs' methods."""
    details = [queries.detail(session, run) for run in runs]
    labels = _labels(details)
    now = dt.datetime.now(dt.UTC)
    return FrozenPage(
        title=" / ".join(labels),
        about=f"A comparison of runs as they were on {now:%d %B %Y, %H:%M} (UTC)",
        blocks=(
            Grid("Results", ("", *labels), tuple(_results(details))),
            Grid("Device time", ("", *labels), tuple(_costs(details))),
            Grid("Settings and inputs that differ", ("", *labels), tuple(_differences(details))),
            *_charts(session, runs, labels, names),
        ),
    )


def _labels(details: Sequence[RunDetail]) -> list[str]:
    """What distinguishes the runs: two of their own may have the same name."""
    names = [f"{run.pipeline.name}.{run.name}" if run.pipeline else run.name for run in details]
    return [
        name if names.count(name) == 1 else f"{name} · {str(run.id)[-6:]}"
        for name, run in zip(names, details, strict=True)
    ]


def _results(details: Sequence[RunDetail]) -> Iterator[tuple[Cell, ...]]:
    yield (Cell("state"), *(Cell(run.state) for run in details))
    results = [
        {name: value for name, value in (run.summary or {}).items() if isinstance(value, int | float)}
        for run in details
    ]
    for name in dict.fromkeys(name for result in results for name in result):
        cells = (Cell(in_words(result[name]) if name in result else _NONE) for result in results)
        yield (Cell(name.replace("_", " ")), *cells)


def _costs(details: Sequence[RunDetail]) -> Iterator[tuple[Cell, ...]]:
    yield (Cell("all phases"), *(Cell(time(run.ledger.device_seconds)) for run in details))
    phases = [{cost.phase: cost.device_seconds for cost in run.ledger.phases} for run in details]
    for phase in dict.fromkeys(phase for costs in phases for phase in costs):
        yield (Cell(phase), *(Cell(time(costs[phase]) if phase in costs else _NONE) for costs in phases))
    if any(run.ledger.failed_attempts for run in details):
        yield (Cell("did not succeed"), *(Cell(time(run.ledger.failed_device_seconds)) for run in details))


def _differences(details: Sequence[RunDetail]) -> Iterator[tuple[Cell, ...]]:
    """The same dataset or model under two names does not differ."""
    settings = [
        {name: (in_words(value),) * 2 for name, value in run.config.items()}
        | {f"input {given.name}": (given.label, given.content or given.label) for given in run.inputs}
        for run in details
    ]
    for name in sorted({name for each in settings for name in each}):
        values = [each.get(name, (_NONE, _NONE)) for each in settings]
        if len(details) == 1 or len({identity for _, identity in values}) > 1:
            yield (Cell(name), *(Cell(shown) for shown, _ in values))


def _charts(session: Session, runs: Sequence[Run], labels: Sequence[str], names: Sequence[str]) -> Iterator[Chart]:
    # A reused run has the curves of the run that did the work.
    worked = [(run.reused_from_id and session.get(Run, run.reused_from_id)) or run for run in runs]
    curves = [{series.name: series for series in metrics(session, run, names, _POINTS)} for run in worked]
    every = {name: series for each in curves for name, series in each.items()}
    shown = [name for name, series in every.items() if names or series.group == "first"]
    for name in shown[:MOST_METRICS]:
        lines = (
            Line(label, place, tuple((point.step, point.value) for point in each[name].points if isfinite(point.value)))
            for place, (label, each) in enumerate(zip(labels, curves, strict=True))
            if name in each
        )
        yield Chart(name, tuple(lines))
