"""A report in words: the evaluation's verdict, what the methods cost, and whether control worked. The command line and
the dashboard show the same."""

from __future__ import annotations

from collections.abc import Iterable

from steerboard_contracts.methods import label_of, learns_from_rewards
from steerboard_contracts.report.baseline import baseline_place, is_usual_baseline
from steerboard_contracts.report.pipeline import MethodRow, Report, ReportCheck, ReportSummary
from steerboard_contracts.report.truth import checks_by_truth, is_above
from steerboard_contracts.wording import listed

SPEARMAN_BAR = 0.9


def in_words(report: Report) -> Report:
    """With what is found when a report is read: the baseline's name and the summary."""
    return report.model_copy(update={"baseline": baseline_of(report.methods), "summary": summarise(report)})


def summarise(report: Report) -> ReportSummary | None:
    """None while nothing has been compared. Without reward models there is a verdict alone."""
    if not report.methods:
        return ReportSummary(verdict=report.headline.text, cost="", checks=[]) if report.headline else None
    found = [ReportCheck(text=text, met=met) for text, met in checks(report)]
    return ReportSummary(verdict=_verdict(report), cost=cost_line(report), checks=found)


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


def _verdict(report: Report) -> str:
    """The evaluation's, word for word. Means and intervals alone are not a test, so without it there is no winner."""
    if report.headline is not None:
        return report.headline.text
    where = f"; the evaluation {report.evaluation.name} does" if report.evaluation is not None else ""
    return f"An earlier version made this report, which does not say whether there is a winner{where}."


def baseline_of(rows: Iterable[MethodRow]) -> str | None:
    """The name of the row that the win rates are against; None where there is none."""
    given = list(rows)
    place = baseline_place(given)
    return None if place is None else label(given[place])


def cost_line(report: Report) -> str:
    """Device-seconds of every method's own run, and of all runs that it needs, the cheapest first."""
    rows: dict[str, MethodRow] = {}
    for row in report.methods:
        rows.setdefault(_unscored_label(row), row)
    if all(row.total_device_seconds is None for row in rows.values()):
        return _former_cost_line(rows)
    by_total = sorted(rows.items(), key=lambda pair: pair[1].total_device_seconds or 0.0)
    parts = [f"{name} {device_seconds(row)}" for name, row in by_total]
    shared = {run.name: run.device_seconds for row in rows.values() for run in row.shared_runs}
    words = f"Device-seconds, own run / with all it needs: {', '.join(parts)}."
    if shared:
        words += f" Shared by several: {', '.join(f'{name} {cost:.1f}' for name, cost in shared.items())}."
    return words + _reference_costs(rows)


def device_seconds(row: MethodRow) -> str:
    """`6.7 / 45.3`: of its own run, and of all runs that it needs."""
    return " / ".join(
        "unknown" if one is None else f"{one:.1f}" for one in (row.own_device_seconds, row.total_device_seconds)
    )


def _former_cost_line(rows: dict[str, MethodRow]) -> str:
    costs = sorted(((name, row.device_seconds) for name, row in rows.items()), key=lambda pair: pair[1])
    parts = ", ".join(f"{name} {cost:.1f}" for name, cost in costs)
    return (
        "Device-seconds, of training with the sampling and labelling of its data, without SFT and the reward model: "
        f"{parts}."
    )


def _reference_costs(rows: dict[str, MethodRow]) -> str:
    """What each total counts of its reference's log-probs, and which were not computed again."""
    rows = {name: row for name, row in rows.items() if row.log_prob_seconds}
    if not rows:
        return ""
    parts = ", ".join(f"{name} {row.log_prob_seconds:.1f}" for name, row in rows.items())
    reused = listed(name for name, row in rows.items() if row.log_prob_seconds_shared)
    paid = f", computed once: {reused} used those of another run" if reused else ""
    alone = [name for name, row in rows.items() if not row.log_prob_seconds_shared]
    own = f"; {listed(alone)} each computed their own" if len(alone) > 1 else ""
    return f" The totals include log-probs of the reference ({parts}{paid}{own})."


def checks(report: Report) -> list[tuple[str, bool]]:
    """What the paper claims of conditional training, and what is known of the truth, and whether it came out here."""
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
        above = all(is_above(high.reward_low, row.reward_high) for row in rivals)
        names = ", ".join(dict.fromkeys(label(row) for row in rivals))
        found.append((f"{label(high)} has its whole interval above those of {names}", above))
    if report.control is not None and report.control.spearman is not None:
        words = f"Spearman of requested and achieved is at least {SPEARMAN_BAR}"
        found.append((words, report.control.spearman >= SPEARMAN_BAR))
    return [*found, *checks_by_truth(report, [label(row) for row in report.methods])]


def _in_the_papers_table(row: MethodRow) -> bool:
    """The paper compares with the baseline and with what learns from the same rewards, one answer each; it claims
    nothing about methods that learn from pairs, or about the best of several answers."""
    return is_usual_baseline(row) or (learns_from_rewards(row.method) and row.best_of is None)


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
