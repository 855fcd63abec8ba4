"""Who may be called the winner, and the sentence that explains why."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard_contracts.report.sections.comparison import PairRow, ScoreRow
from steerboard_statistics.paired import MIN_TEST_ITEMS, SIGNIFICANT


def winner_of(scores: Sequence[ScoreRow], pairs: Sequence[PairRow]) -> tuple[str | None, str]:
    """The entrant that is better on mean and significant after Holm against every rival, or None; and why."""
    seen = [row for row in scores if row.mean.value is not None]
    if not seen:
        return None, "No winner: nothing has been compared yet."
    if len(scores) == 1:
        return None, f"No winner: {scores[0].entrant} has no rival."
    against = {name: _against(name, pairs) for name in (row.entrant for row in scores)}
    for name, rivals in against.items():
        if len(rivals) == len(scores) - 1 and all(row.significant and ahead > 0 for row, ahead in rivals.values()):
            return name, _won(name, rivals, len(pairs))
    best = max(seen, key=lambda row: row.mean.value or 0.0)
    level = [row.entrant for row in seen if row.mean.value == best.mean.value]
    if len(level) > 1:
        return None, f"No winner: {_listed(level)} share the highest mean, {best.mean.value:.3g}."
    others = [row.entrant for row in scores if row.entrant != best.entrant]
    return None, _not_won(best, others, against[best.entrant], len(pairs))


def _against(name: str, pairs: Sequence[PairRow]) -> dict[str, tuple[PairRow, float]]:
    """The row of each rival, and by how much `name` is ahead."""
    rivals = {}
    for row in pairs:
        if name not in (row.a, row.b) or row.difference is None or row.difference.value is None:
            continue
        ahead = row.difference.value if row.a == name else -row.difference.value
        rivals[row.b if row.a == name else row.a] = (row, ahead)
    return rivals


def _won(name: str, rivals: dict[str, tuple[PairRow, float]], tested: int) -> str:
    closest, (row, ahead) = max(rivals.items(), key=lambda item: (item[1][0].p_holm or 0.0, -item[1][1]))
    others = "its only rival" if len(rivals) == 1 else "every rival"
    return (
        f"{name} is significantly better than {others}; the closest is {closest} "
        f"({ahead:+.3g} on average, {_p(row.p_holm)}{_after(tested)})."
    )


def _not_won(best: ScoreRow, others: Sequence[str], rivals: dict[str, tuple[PairRow, float]], tested: int) -> str:
    start = f"No winner: {best.entrant} has the highest mean ({best.mean.value:.3g}), but "
    unmet = [name for name in others if name not in rivals]
    if unmet:
        return f"{start}no item compares it with {_listed(unmet)}."
    untested = [name for name, (row, _) in rivals.items() if row.p_holm is None]
    if untested:
        items = min(rivals[name][0].win_rate.n for name in untested)
        have = f"{items} item compares" if items == 1 else f"{items} items compare"
        return f"{start}only {have} it with {_listed(untested)}, and a test needs {MIN_TEST_ITEMS}."
    behind = [name for name, (_, ahead) in rivals.items() if ahead <= 0]
    if behind:
        return f"{start}on the items of both it is not ahead of {_listed(behind)}."
    opposed = [name for name, (row, _) in rivals.items() if _opposed(row)]
    if opposed:
        return f"{start}the signed ranks favour {_listed(opposed)}: a few large differences make the mean."
    close = {name: row for name, (row, _) in rivals.items() if not row.significant}
    name = max(close, key=lambda rival: close[rival].p_holm or 0.0)
    more = len(close) - 1
    rest = f" (nor from {more} other{'s' * (more != 1)})" if more else ""
    return f"{start}it does not differ significantly from {name}: {_p(close[name].p_holm)}{_after(tested)}{rest}."


def _opposed(row: PairRow) -> bool:
    return row.p_holm is not None and row.p_holm < SIGNIFICANT and not row.significant


def _after(tested: int) -> str:
    return f" after Holm over {tested} pairs" if tested > 1 else ""


def _p(p: float | None) -> str:
    return "p < 0.001" if p is not None and p < 0.001 else f"p = {p:.2g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
