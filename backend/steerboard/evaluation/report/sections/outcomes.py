"""A source's comparison in a sentence: who is in front, by how much, and who is within noise."""

from __future__ import annotations

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import By, Comparison, PairRow, pair_of
from steerboard_contracts.report.sections.headline import Margin, WinnerStatement
from steerboard_contracts.wording import counted, listed

_KINDS: dict[By, str] = {"human": "people of", "judge": "judge", "jury": "jury", "reward": "reward model"}


# Fewer items are called few, unless they suffice for some pair.
MIN_ITEMS = 10


def few_items(comparison: Comparison) -> list[str]:
    """A warning where so few items tell no two entrants apart; none where a test of a pair is significant."""
    if not 0 < comparison.items < MIN_ITEMS or any(row.significant for row in comparison.pairs):
        return []
    verb = "is" if comparison.items == 1 else "are"
    return [f"{counted(comparison.items, 'item')} {verb} too few to tell entrants apart"]


def outcome_of(comparison: Comparison) -> WinnerStatement:
    """The winner with its closest rival, or who shares the lead; `Comparison.why` where that is unknown."""
    leader = comparison.winner or _leader(comparison)
    if leader is None:
        return WinnerStatement(text=comparison.why, items=comparison.items)
    rivals = [row.entrant for row in comparison.scores if row.entrant != leader]
    rows = {name: row for name in rivals if (row := pair_of(comparison, leader, name)) is not None}
    tested = {name: row for name, row in rows.items() if row.p_holm is not None}
    statement = WinnerStatement(text=comparison.why, winner=comparison.winner, leader=leader, items=comparison.items)
    if not tested:
        return statement
    least = min(tested, key=lambda name: _ahead(tested[name]))
    # The closest of the rivals that it is ahead of is the likeliest to differ by chance alone.
    closest = max(tested, key=lambda name: (tested[name].p_holm or 0.0, -_ahead(tested[name])))
    if _ahead(tested[least]) <= 0:
        closest = least
    row = tested[closest]
    statement.margin = Margin(over=closest, win_rate=row.win_rate, difference=row.difference, p_holm=row.p_holm)
    if comparison.winner is None:
        statement.tied = [name for name, row in tested.items() if not row.significant]
        # These are explained in the comparison's own words, a small p that speaks for the rival, too.
        clear = not statement.tied or any((tested[name].p_holm or 0.0) < 0.05 for name in statement.tied)
        if clear or len(tested) < len(rivals) or _ahead(row) <= 0:
            statement.text = f"{comparison.why} {_rate(row, closest, len(comparison.pairs))}"
            return statement
    statement.text = _worded(statement, closest, row, len(rivals), len(comparison.pairs))
    return statement


def _leader(comparison: Comparison) -> str | None:
    """The one entrant with the highest mean, of at least two."""
    means = {row.entrant: row.mean.value for row in comparison.scores if row.mean.value is not None}
    best = [name for name, mean in means.items() if mean == max(means.values())]
    return best[0] if len(best) == 1 and len(means) > 1 else None


def _ahead(row: PairRow) -> float:
    return row.difference.value if row.difference is not None and row.difference.value is not None else 0.0


def _worded(statement: WinnerStatement, closest: str, row: PairRow, rivals: int, tested: int) -> str:
    rate = _figures(row, tested)
    if statement.winner is not None:
        which = "its only rival" if rivals == 1 else f"the closest of {rivals} rivals"
        return f"{statement.winner} wins: against {closest}, {which}, its win rate is {rate}."
    noise = listed([statement.leader or "", *statement.tied])
    return (
        f"No winner: {noise} are within noise. {statement.leader} has the highest mean; "
        f"against {closest} its win rate is {rate}."
    )


def _figures(row: PairRow, tested: int) -> str:
    holm = f" after Holm over {tested} pairs" if tested > 1 else ""
    p = "p < 0.001" if row.p_holm is not None and row.p_holm < 0.001 else f"p = {row.p_holm:.2g}"
    return f"{percent(row.win_rate)} over {row.win_rate.n} items ({p}{holm})"


def _rate(row: PairRow, rival: str, tested: int) -> str:
    return f"Against {rival} its win rate is {_figures(row, tested)}."


def source_name(by: By, label: str) -> str:
    """`people of helpfulness`, `judge gpt`, `reward model rm`."""
    return f"{_KINDS[by]} {label}"


def percent(of: Estimate) -> str:
    """`62.0% [55.1%, 68.9%]`."""
    return of.in_words("{:.1%}".format, none="unknown")
