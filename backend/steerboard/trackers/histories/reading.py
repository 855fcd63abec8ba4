"""What another trainer wrote down of a run: the `trainer_state.json` of transformers and TRL, or a table with a row for
each step, as W&B, Trackio and others export it."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.run_kinds.history import Setting
from steerboard_files.detect import open_reader
from steerboard_files.records import Problem, Source

MOST_BYTES = 64 * 2**20
MOST_METRICS = 500
MOST_POINTS = 1_000_000
_LAST_STEP = 2**31 - 1
_LONGEST_NAME = 200

_STEPS = ("step", "_step", "Step", "global_step", "train/global_step", "trainer/global_step")
_NO_METRICS = frozenset(
    {*_STEPS, "epoch", "train/epoch", "_runtime", "_timestamp", "timestamp", "wall_time", "Wall time"}
)
# W&B's export of a chart has the bounds of each point in columns of their own.
_BOUNDS = ("__MIN", "__MAX")
# Same quantity, other name; all others keep theirs.
_OURS = {"learning_rate": "lr", "rewards/accuracies": "pair_accuracy"}


class BadHistory(BadInput):
    """The file is no history of a run, or not of one."""

    code = "bad_history"
    title = "The history cannot be read"


@dataclass
class History:
    """`metrics`: the value at each step, by name. `not_finite`: values that are left out."""

    format: Literal["trainer_state", "table"]
    settings: dict[str, Setting] = field(default_factory=dict)
    metrics: dict[str, dict[int, float]] = field(default_factory=dict)
    not_finite: int = 0

    @property
    def last(self) -> dict[str, float]:
        """The value at the last step of each metric."""
        return {name: values[max(values)] for name, values in self.metrics.items()}


def read_history(source: Source) -> History:
    """Raises `BadHistory`, and what opening a file raises."""
    content = source.open().read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadHistory(
            f"{source.label} has more than {MOST_BYTES // 2**20} MiB", hint="Export fewer metrics, or fewer steps."
        )
    state = _trainer_state(content)
    if state is not None:
        history = History("trainer_state", {name: value for name, value in state.items() if _is_plain(value)})
        rows: Iterable[tuple[int, dict[str, Any]]] = enumerate(_objects(state["log_history"]), 1)
    else:
        history, rows = History("table"), _table(source.label, content)
    _read(history, rows, source.label)
    if not history.metrics:
        raise BadHistory(
            f"{source.label} has no metric at any step",
            hint="Give trainer_state.json, or a table with a column `step`, `_step` or `Step` and one for each metric.",
        )
    return history


def _trainer_state(content: bytes) -> dict[str, Any] | None:
    if not content.lstrip().startswith(b"{"):
        return None
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None  # perhaps an object on each line
    return document if isinstance(document, dict) and isinstance(document.get("log_history"), list) else None


def _is_plain(value: object) -> bool:
    """Numbers alone: texts there are paths of another machine."""
    return isinstance(value, int | float) and abs(value) < math.inf and abs(value) < 2**53


def _objects(rows: list[Any]) -> Iterator[dict[str, Any]]:
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise _fault(f"log_history[{place}]", "is not an object")
        yield row


def _table(label: str, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = open_reader(Source(label, lambda: io.BytesIO(content)))
    for number, row in reader.records:
        if isinstance(row, Problem):
            raise _fault(f"{reader.unit} {number}", row.reason)
        yield number, row


def _read(history: History, rows: Iterable[tuple[int, dict[str, Any]]], label: str) -> None:
    """A later row of a step replaces its values, as where a trainer resumed."""
    columns: dict[str, str] = {}
    points = 0
    for number, row in rows:
        step = _step(row, number)
        if step is None:
            continue
        for column, given in row.items():
            if column in _NO_METRICS or column.endswith(_BOUNDS):
                continue
            value = _number(given)
            if value is None:
                continue
            if not math.isfinite(value):
                history.not_finite += 1
                continue
            name = _name(column)
            if columns.setdefault(name, column) != column:
                raise _fault(f"column {column!r}", f"is {name!r}, as is {columns[name]!r}: export one run at a time")
            values = history.metrics.setdefault(name, {})
            points += step not in values
            values[step] = value
        if len(history.metrics) > MOST_METRICS or points > MOST_POINTS:
            raise BadHistory(
                f"{label} has more than {MOST_METRICS} metrics or {MOST_POINTS:,} values",
                hint="Export fewer metrics, or fewer steps.",
            )


def _step(row: Mapping[str, Any], number: int) -> int | None:
    """The row's step. A row without one, such as one of the system's, gives None."""
    given = next((row[name] for name in _STEPS if row.get(name) not in (None, "")), None)
    if given is None:
        return None
    step = _number(given)
    if step is None or not math.isfinite(step) or step != int(step) or not 0 <= step <= _LAST_STEP:
        raise _fault(f"row {number}", f"has {str(given)[:40]!r} as its step instead of a whole number from 0")
    return int(step)


def _number(given: object) -> float | None:
    """The value as a number. An empty cell, a text and a truth value give None."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        return float(given)
    except (ValueError, OverflowError):
        return None


def _name(column: str) -> str:
    """The platform's name of a column: `train/loss` is loss, `eval/loss` and `eval_loss` are eval_loss. W&B's export of
    a chart puts the run's name before it."""
    name = column.rsplit(" - ", 1)[-1].removeprefix("train/")
    held_out = name.startswith(("eval/", "eval_"))
    plain = name[len("eval/") :] if held_out else name
    name = ("eval_" if held_out else "") + _OURS.get(plain, plain)
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise _fault(f"column {column[:60]!r}", "cannot be the name of a metric")
    return name


def _fault(where: str, what: str) -> BadHistory:
    return BadHistory(f"{where} {what}", errors=[ErrorLocation(location=where, message=what)])
