"""How far two leaderboards agree: correlations of the figures of the models that both have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.reading import Fields, Figures, Findings
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled
from steerboard_figures.benchmark_files.tables import table
from steerboard_figures.formats.records import Unreadable, number
from steerboard_statistics.correlation import pearson, rank_correlation

# What leaderboards call their figure, the first that there is.
_COLUMNS = ("length_controlled_winrate", "rating", "score", "win_rate", "average", "elo")
# And the model.
_NAMES = ("model", "model_name", "name", "generator")
_FIGURES = ("pearson", "spearman", "kendall")
_FEW = 3


def correlation(paths: Sequence[Path], columns: Sequence[str], findings: Findings) -> Figures:
    """Pearson's r, Spearman's rho and Kendall's tau-b over the models of both tables, by name. `columns`: of the
    figure, one for both tables or one of each. Raises `BadInput`."""
    if len(paths) != 2 or len(columns) > 2:
        raise BadInput(
            f"a correlation is of two leaderboards, not of {len(paths)}",
            code="invalid_request",
            hint="Give two tables, and --column for both or once for each.",
        )
    wanted = [*columns, *columns][:2] if columns else [None, None]
    first, second = (_read(path, column, findings) for path, column in zip(paths, wanted, strict=True))
    models = [name for name in first[1] if name in second[1]]
    x, y = [first[1][name] for name in models], [second[1][name] for name in models]
    rho, tau = rank_correlation(x, y)
    figures = {
        "columns": [first[0], second[0]],
        "n": len(models),
        "pearson": pearson(x, y),
        "spearman": rho,
        "kendall": tau,
        "common": models,
        "only_in": [sorted(first[1].keys() - second[1].keys()), sorted(second[1].keys() - first[1].keys())],
    }
    if len(models) < _FEW:
        findings.warn(f"{len(models)} models are in both leaderboards: too few for a correlation")
        figures |= dict.fromkeys(_FIGURES)
    else:
        fewer = min(len(first[1]), len(second[1]))
        if 2 * len(models) < fewer:
            findings.warn(f"only {len(models)} models are in both leaderboards, of {fewer} in the shorter one")
        for path, values in zip(paths, (x, y), strict=True):
            if len(set(values)) == 1:
                findings.warn(f"{path.name} has the same figure for all {len(models)} models: there is no correlation")
    for path, (column, ratings, blank, unordered) in zip(paths, (first, second), strict=True):
        if blank:
            findings.warn(f"{path.name} has no {column} of {blank:,} models, which count as absent")
        reason = findings.lost(path.name, len(ratings), {UNORDERED: unordered}, what="models")
        if reason is not None:
            findings.invalid(path.name, reason)
            figures |= dict.fromkeys(_FIGURES)
    return findings.marked(figures, _FIGURES, len(models), {}, what="models")


def _read(path: Path, column: str | None, findings: Findings) -> tuple[str, dict[str, float], int, int]:
    """(column, {model: figure}, how many rows have none, whose models are absent, how many models have rows with
    several figures, which are left out). Raises `BadInput`."""
    rows = table(path, *([column.strip().lower()] if column else []))
    names = list(rows[0][1])
    chosen = column.strip().lower() if column else next((usual for usual in _COLUMNS if usual in names), None)
    if chosen is None:
        raise BadInput(
            f"{path.name} has none of the columns {', '.join(_COLUMNS)}; it has {', '.join(names)[:300]}",
            code="missing_input",
            hint="Name the column with --column.",
        )
    key = _key(path, [row for _, row in rows], [name for name in names if name != chosen])
    read: list[tuple[str, float]] = []
    without = 0
    for line, row in rows:
        findings.row(path, [path.name])
        try:
            name, value = _figure(row, key, chosen)
        except Unreadable as error:
            findings.unreadable(path, line, str(error), [path.name])
            continue
        if value is None:
            without += 1
            continue
        read.append((name, value))
    settled_ = settled(read, lambda row: row[0], lambda _: None, lambda row: row[1], findings.repeats)
    findings.repeated(path.name, settled_.superseded, len(read))
    return (
        chosen,
        {name: value for name, value in settled_.kept if name not in settled_.unordered},
        without,
        len(settled_.unordered),
    )


def _key(path: Path, rows: Sequence[Fields], names: Sequence[str]) -> str:
    """The column with the models' names: `model` or another usual name, else the first that is not numbers alone, such
    as the index that a table is written with. Raises `BadInput`."""
    usual = next((name for name in _NAMES if name in names), None)
    words = (name for name in names if any(not _is_number(row, name) for row in rows))
    key = usual or next(words, None)
    if key is None:
        raise BadInput(
            f"{path.name} has no column with the models' names; it has {', '.join(names)[:300]} and the figure",
            code="missing_input",
            hint="Call the column with the names `model`.",
        )
    return key


def _is_number(row: Fields, name: str) -> bool:
    """Whether the value is a number or empty."""
    try:
        number(row, name)
    except Unreadable:
        return False
    return True


def _figure(row: Fields, key: str, column: str) -> tuple[str, float | None]:
    """The model and its figure; None for a model without it. Raises `Unreadable`."""
    name, value = str(row.get(key) or "").strip(), number(row, column)
    if not name:
        raise Unreadable(f"has no name in `{key or 'the first column'}`")
    return name, value
