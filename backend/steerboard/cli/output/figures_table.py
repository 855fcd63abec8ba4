"""The figures of judgment files as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from steerboard.cli.output.console import console

Figures = Mapping[str, Any]

# The lists of a document, and of each the columns that a person reads first. One without any value is left out.
_LISTS: dict[str, tuple[str, ...]] = {
    "models": (
        "model",
        "baseline",
        "average",
        "win_rate",
        "standard_error",
        "discrete_win_rate",
        "length_controlled",
        "length_controlled_no_regularisation",
        "length_controlled_minimal",
        "lc_standard_error",
        "avg_length",
        "win_rate_adjusted",
        "flip_rate",
        "rating",
        "accuracy",
        "precision",
        "recall",
        "f1",
        "low",
        "high",
        "elo",
        "n",
        "nulls",
        "unparsed",
        "errors",
        "superseded",
    ),
    "files": ("file", "total_1", "total_2", "share_1", "wins_1", "ties", "wins_2", "flip_rate", "n", "unparsed"),
    "evaluators": (
        "dataset",
        "evaluator",
        "correct_average",
        "low",
        "high",
        "correct_both",
        "kappa_12",
        "kappa_21",
        "n",
        "unparsed",
    ),
    "pairs": ("a", "b", "difference", "p", "p_holm"),
}
_PAIRED = ("name", "n", "a", "b", "difference", "low", "high", "only_a", "only_b", "p", "p_holm")
_PLAIN = ("n", "pearson", "spearman", "kendall", "overall", "separability", "items_of_all")
_MOST_COLUMNS = 50
# The width of the names in a table; numbers take the rest.
_NAME_WIDTH = 24
_MAPPINGS = ("rank_scores", "sections", "subsets", "domains", "ties")


def print_figures(figures: Figures, out: Console | None = None) -> None:
    """Invalid figures are empty and carry their reason; what the rest of the input gives stays in the JSON."""
    to = out or console()
    judges = figures.get("judges") or {}
    named = f", judge {next(iter(judges))}" if len(judges) == 1 else ""
    to.print(f"{figures['format']}: {figures['rows']:,} rows{named}" + _bad(figures), style="bold")
    for reason in figures["reasons"]:
        to.print(f"INVALID  {reason}", style="red")
    for warning in figures["warnings"]:
        to.print(f"warning  {warning}", style="yellow")
    for line in _dialect(figures):
        to.print(line)
    for result in figures.get("results", [figures]):
        if result is not figures:
            to.print(f"\njudge {result['judge'] or 'not named'}", style="bold")
        _result(result, to)
    for compared in figures.get("comparisons") or ():
        _comparison(compared, to)
    if figures.get("results") and figures.get("why"):
        to.print(f"\n{figures['why']}")


def _comparison(comparison: Figures, to: Console) -> None:
    """Two models on the same items: the whole first, then its parts."""
    to.print(f"\n{comparison['a']} (a) against {comparison['b']} (b), on the same {comparison['n']:,}", style="bold")
    rows = [*(comparison[name] for name in ("overall", "all") if comparison.get(name)), *comparison.get("sections", ())]
    for table in _tables([*rows, *comparison["subsets"]], _PAIRED, to.width) if comparison["subsets"] else ():
        to.print(table)
    if comparison.get("why"):
        to.print(comparison["why"])


def _bad(figures: Figures) -> str:
    if not figures["bad_rows"]:
        return ""
    return f", {figures['bad_rows']:,} unreadable ({figures['bad'][0]})"


def _dialect(figures: Figures) -> list[str]:
    """What the files' words are read as, where that is more than the format's own spelling."""
    lines = []
    verdicts = figures.get("verdicts") or {}
    if verdicts:
        read = (f"{word} ({reading['n']:,}) as {reading['read_as'] or 'none'}" for word, reading in verdicts.items())
        lines.append("verdicts read: " + ", ".join(read))
    if figures.get("reviewers"):
        lines.append(
            "reviewers read: " + ", ".join(f"{reviewer} as {name}" for reviewer, name in figures["reviewers"].items())
        )
    return lines


def _result(result: Figures, to: Console) -> None:
    for name, columns in _LISTS.items():
        rows = result.get(name)
        if rows and isinstance(rows, list):
            for table in _tables(rows, columns, to.width):
                to.print(table)
    for model in result.get("models") or ():
        if model.get("categories"):
            to.print(
                f"{model['model']}: "
                + ", ".join(f"{name} {_cell(share)}" for name, share in model["categories"].items())
            )
        if model.get("against"):
            rates = {key: value for key, value in model["against"].items() if key != "baseline"}
            shown = ", ".join(f"{key} {_cell(value)}" for key, value in rates.items())
            to.print(f"{model['model']} against {model['against']['baseline']}: {shown}")
        for key in ("why", "note"):
            if model.get(key):
                to.print(f"{model['model']}: {model[key]}")
    if result.get("unrated"):
        to.print(f"no finite rating: {', '.join(result['unrated'])}")
    for name in _MAPPINGS:
        if isinstance(result.get(name), Mapping):
            numbers = {key: value for key, value in result[name].items() if isinstance(value, int | float)}
            to.print(f"{name}: " + ", ".join(f"{key} {_cell(value)}" for key, value in numbers.items()))
    for name in _PLAIN:
        if result.get(name) is not None:
            to.print(f"{name}: {_cell(result[name])}")
    if len(result.get("matrix") or ()) > _MOST_COLUMNS:
        to.print(f"\nthe win rates of {len(result['matrix']):,} models against each other are in --json")
    elif result.get("matrix"):
        to.print("\nwin rates of rows against columns")
        for table in _tables(
            *_matrix(result["matrix"], [model["model"] for model in result.get("models") or ()]), to.width
        ):
            to.print(table)
    styled = result.get("style_controlled")
    if styled and styled["models"]:
        weights = ", ".join(f"{name} {_cell(value)}" for name, value in styled["coefficients"].items())
        to.print(f"\nwith style controlled for, {styled['n']:,} battles; coefficients: {weights}")
        for table in _tables(styled["models"], _LISTS["models"], to.width):
            to.print(table)
    if result.get("why"):
        to.print(result["why"])


def _matrix(matrix: Figures, best_first: Sequence[str]) -> tuple[list[Figures], list[str]]:
    """(rows, columns), in the order of the leaderboard."""
    names = [*(name for name in best_first if name in matrix), *(name for name in matrix if name not in best_first)]
    return [{"model": name, **matrix[name]} for name in names], ["model", *names]


def _tables(rows: Sequence[Figures], columns: Sequence[str], width: int) -> list[Table]:
    """One, or several where its numbers do not fit: a number is never cut, a name goes over several lines."""
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    names = [name for name in shown if isinstance(rows[0].get(name), str)]
    widths = {name: max(len(name), *(len(_cell(row.get(name))) for row in rows)) + 1 for name in shown}
    room = width - sum(min(widths[name], _NAME_WIDTH) for name in names)
    groups: list[list[str]] = [[]]
    for name in (name for name in shown if name not in names):
        if groups[-1] and sum(widths[column] for column in groups[-1]) + widths[name] > room:
            groups.append([])
        groups[-1].append(name)
    return [_table(rows, names, group) for group in groups]


def _table(rows: Sequence[Figures], names: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in (*names, *numbers)))
    return table


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("value")
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
