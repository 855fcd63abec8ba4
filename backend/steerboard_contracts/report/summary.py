"""A report in words: the winner if there is one, its lead, its cost, and whether control worked. The
command line and the dashboard show the same."""

from __future__ import annotations

from collections.abc import Iterable

from steerboard_contracts.methods import baseline_methods, label_of, learns_from_rewards
from steerboard_contracts.report.pipeline import MethodRow, Report, ReportCheck, ReportSummary

SPEARMAN_BAR = 0.9


def in_words(report: Report) -> Report:
    """With what is found when a report is read: the baseline's name and the summary."""
    return report.model_copy(update={"baseline": baseline_of(report.methods), "summary": summarise(report)})


def summarise(report: Report) -> ReportSummary | None:
    """None while there are no methods."""
    if not report.methods:
        return None
    found = [ReportCheck(text=text, met=met) for text, met in checks(report)]
    return ReportSummary(verdict=verdict(report), cost=cost_line(report), checks=found)


def label(row: MethodRow) -> str:
    """With the score asked for: `NAME at 5.0`; `NAME (best of 8)`."""
    name = _unscored_label(row)
    return name if row.score is None else f"{name} at {row.score:.1f}"


def _unscored_label(row: MethodRow) -> str:
    name = label_of(row.method, row.entrant) + (f" ({row.variant})" if row.variant else "")
    return name if row.best_of is None else f"{name} (best of {row.best_of})"


def best_rows(report: Report) -> list[MethodRow]:
    """The best row of each model, and of its best-of-n, the best first."""
    best: dict[tuple[str, int | None], MethodRow] = {}
    for row in report.methods:
        key = row.entrant, row.best_of
        if key not in best or row.reward_mean > best[key].reward_mean:
            best[key] = row
    return sorted(best.values(), key=lambda row: row.reward_mean, reverse=True)


def _interval(row: MethodRow) -> str:
    return f"[{row.reward_low:.2f}, {row.reward_high:.2f}]"


def verdict(report: Report) -> str:
    """Names a winner only if its interval is above that of every other method."""
    best = best_rows(report)
    if not best:
        return "There is nothing to compare."
    first, others = best[0], best[1:]
    if not others:
        return f"{label(first)} is the only method: reward {first.reward_mean:.2f} {_interval(first)}."
    close = [row for row in others if row.reward_high >= first.reward_low]
    if close:
        names = " and of ".join(f"{label(row)} {_interval(row)}" for row in close)
        overlap = f"the interval of {label(first)} {_interval(first)} overlaps with that of {names}"
        return f"No winner is clear: {overlap}.{_lead(first, others)}"
    return f"{label(first)} won with reward {first.reward_mean:.2f} {_interval(first)}.{_lead(first, others)}"


def _lead(first: MethodRow, others: list[MethodRow]) -> str:
    """By how much the best row leads the baseline and the next best."""
    usual = next((row for row in others if _is_baseline(row)), None)
    parts = []
    if usual is not None:
        parts.append(f"{first.reward_mean - usual.reward_mean:.2f} above {label(usual)}")
    if others[0] is not usual:
        parts.append(f"{first.reward_mean - others[0].reward_mean:.2f} above {label(others[0])}, the next best")
    if usual is not None and others[0] is usual:
        parts[0] += ", the next best"
    return f" {label(first)} is {' and '.join(parts)}." if parts else ""


def baseline_of(rows: Iterable[MethodRow]) -> str | None:
    """The name of the row that the win rates are against: the first of a baseline; None where there is none."""
    return next((label(row) for row in rows if _is_baseline(row)), None)


def _is_baseline(row: MethodRow) -> bool:
    return row.method in baseline_methods() and row.best_of is None


def cost_line(report: Report) -> str:
    """Device-seconds of every method, the cheapest first."""
    costs: dict[str, float] = {}
    for row in report.methods:
        costs.setdefault(_unscored_label(row), row.device_seconds)
    parts = [f"{name} {cost:.1f}" for name, cost in sorted(costs.items(), key=lambda pair: pair[1])]
    return f"Device-seconds, generation and scoring included: {', '.join(parts)}.{_reference_costs(report)}"


def _reference_costs(report: Report) -> str:
    """What each method's cost counts of its reference's log-probs, and which were not paid again."""
    rows = {_unscored_label(row): row for row in report.methods if row.log_prob_seconds}
    if not rows:
        return ""
    parts = ", ".join(f"{name} {row.log_prob_seconds:.1f}" for name, row in rows.items())
    reused = " and ".join(name for name, row in rows.items() if row.log_prob_seconds_shared)
    paid = f", paid once: {reused} used those of another run" if reused else ""
    alone = [name for name, row in rows.items() if not row.log_prob_seconds_shared]
    own = f"; {' and '.join(alone)} each computed their own" if len(alone) > 1 else ""
    return f" Log-probs of the reference are part of that ({parts}{paid}{own})."


def checks(report: Report) -> list[tuple[str, bool]]:
    """What the paper claims of conditional training, and whether it came out here."""
    found: list[tuple[str, bool]] = []
    high, low = _scored(report, highest=True), _scored(report, highest=False)
    labelled = report.labelled_rewards
    if high is not None and labelled is not None and _number(high) > 0:
        words = f"{label(high)} gets {high.reward_mean:.2f}; the labelled data's 80th percentile is {labelled.p80:.2f}"
        found.append((words, high.reward_mean >= labelled.p80))
    if low is not None and labelled is not None and _number(low) < 0:
        words = f"{label(low)} gets {low.reward_mean:.2f}; the labelled data's 20th percentile is {labelled.p20:.2f}"
        found.append((words, low.reward_mean <= labelled.p20))
    rivals = [row for row in report.methods if row.score is None and _in_the_papers_table(row)]
    if high is not None and rivals:
        above = all(high.reward_low > row.reward_high for row in rivals)
        names = ", ".join(dict.fromkeys(label(row) for row in rivals))
        found.append((f"{label(high)} has its whole interval above those of {names}", above))
    if report.control is not None and report.control.spearman is not None:
        words = f"Spearman of requested and achieved is at least {SPEARMAN_BAR}"
        found.append((words, report.control.spearman >= SPEARMAN_BAR))
    return found


def _in_the_papers_table(row: MethodRow) -> bool:
    """The paper compares with the baseline and with what learns from the same rewards, one answer each; it claims
    nothing about methods that learn from pairs, or about the best of several answers."""
    return _is_baseline(row) or (learns_from_rewards(row.method) and row.best_of is None)


def _number(row: MethodRow) -> float:
    return (row.score.score if row.score is not None else None) or 0.0


def _scored(report: Report, *, highest: bool) -> MethodRow | None:
    """The row of the highest or lowest requested score."""
    scored = sorted(
        (row for row in report.methods if row.score is not None and row.score.score is not None), key=_number
    )
    if not scored:
        return None
    return scored[-1] if highest else scored[0]
