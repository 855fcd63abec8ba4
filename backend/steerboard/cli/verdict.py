"""What a report says in words: the winner if there is one, its lead, its price, and whether control worked."""

from __future__ import annotations

from steerboard_contracts.report import MethodRow, Report

METHOD_NAMES = {
    "sft": "SFT",
    "mle_filter": "MLE with filtering",
    "rwr": "RWR",
    "decision_transformer": "Decision Transformer",
}
SHORT_NAMES = {"sft": "SFT", "mle_filter": "MLE filter", "rwr": "RWR", "decision_transformer": "DT"}
SPEARMAN_BAR = 0.9


def label(row: MethodRow) -> str:
    """`Decision Transformer at 5.0`."""
    name = METHOD_NAMES.get(row.method, row.entrant)
    return name if row.score is None else f"{name} at {row.score:.1f}"


def best_rows(report: Report) -> list[MethodRow]:
    """The best row of each entrant, the best entrant first."""
    best: dict[str, MethodRow] = {}
    for row in report.methods:
        if row.entrant not in best or row.reward_mean > best[row.entrant].reward_mean:
            best[row.entrant] = row
    return sorted(best.values(), key=lambda row: row.reward_mean, reverse=True)


def _interval(row: MethodRow) -> str:
    return f"[{row.reward_low:.2f}, {row.reward_high:.2f}]"


def verdict(report: Report) -> str:
    """Names a winner only when its interval lies above that of every other method."""
    best = best_rows(report)
    if not best:
        return "There is nothing to compare."
    first, others = best[0], best[1:]
    if not others:
        return f"{label(first)} stands alone: reward {first.reward_mean:.2f} {_interval(first)}."
    close = [row for row in others if row.reward_high >= first.reward_low]
    if close:
        names = " and of ".join(f"{label(row)} {_interval(row)}" for row in close)
        overlap = f"the interval of {label(first)} {_interval(first)} overlaps with that of {names}"
        return f"No winner is clear: {overlap}.{_lead(first, others)}"
    return f"{label(first)} won with reward {first.reward_mean:.2f} {_interval(first)}.{_lead(first, others)}"


def _lead(first: MethodRow, others: list[MethodRow]) -> str:
    """By how much the best row leads SFT and the next best."""
    sft = next((row for row in others if row.method == "sft"), None)
    parts = []
    if sft is not None:
        parts.append(f"{first.reward_mean - sft.reward_mean:.2f} above SFT")
    if others[0] is not sft:
        parts.append(f"{first.reward_mean - others[0].reward_mean:.2f} above {label(others[0])}, the next best")
    if sft is not None and others[0] is sft:
        parts[0] += ", the next best"
    return f" {label(first)} is {' and '.join(parts)}." if parts else ""


def cost_line(report: Report) -> str:
    """Device-seconds of every method, the cheapest first."""
    costs: dict[str, float] = {}
    for row in report.methods:
        costs.setdefault(METHOD_NAMES.get(row.method, row.entrant), row.device_seconds)
    parts = [f"{name} {cost:.1f}" for name, cost in sorted(costs.items(), key=lambda pair: pair[1])]
    return f"Device-seconds, generation and scoring included: {', '.join(parts)}."


def checks(report: Report) -> list[tuple[str, bool]]:
    """What the paper claims of conditional training, and whether it came out here."""
    found: list[tuple[str, bool]] = []
    high, low = _scored(report, highest=True), _scored(report, highest=False)
    labelled = report.labelled_rewards
    if high is not None and labelled is not None and high.score is not None and high.score > 0:
        words = f"{label(high)} gets {high.reward_mean:.2f}; the labelled data's 80th percentile is {labelled.p80:.2f}"
        found.append((words, high.reward_mean >= labelled.p80))
    if low is not None and labelled is not None and low.score is not None and low.score < 0:
        words = f"{label(low)} gets {low.reward_mean:.2f}; the labelled data's 20th percentile is {labelled.p20:.2f}"
        found.append((words, low.reward_mean <= labelled.p20))
    rivals = [row for row in report.methods if row.score is None]
    if high is not None and rivals:
        above = all(high.reward_low > row.reward_high for row in rivals)
        names = ", ".join(dict.fromkeys(label(row) for row in rivals))
        found.append((f"{label(high)} has its whole interval above those of {names}", above))
    if report.control is not None and report.control.spearman is not None:
        words = f"Spearman of requested and achieved is at least {SPEARMAN_BAR}"
        found.append((words, report.control.spearman >= SPEARMAN_BAR))
    return found


def _scored(report: Report, *, highest: bool) -> MethodRow | None:
    """The row of the highest or lowest requested score."""
    scored = sorted((row for row in report.methods if row.score is not None), key=lambda row: row.score or 0.0)
    if not scored:
        return None
    return scored[-1] if highest else scored[0]
