"""What a recipe's report claims, and whether it came out: the paper's claims about conditional training, and where a
program knows how good each answer is, control and gains by that truth, not by a reward model that may be wrong."""

from __future__ import annotations

from steerboard_contracts.methods import learns_from_rewards
from steerboard_contracts.report.baseline import is_usual_baseline
from steerboard_contracts.report.flat import label
from steerboard_contracts.report.pipeline import MethodRow, PipelineReport
from steerboard_contracts.report.sections.recipe import ReportCheck
from steerboard_contracts.report.truth import checks_by_truth, is_above

SPEARMAN_BAR = 0.9


def checks(report: PipelineReport) -> list[ReportCheck]:
    """Every claim with the figures of this report."""
    results: list[tuple[str, bool]] = []
    high, low = _scored(report, highest=True), _scored(report, highest=False)
    labelled = report.labelled_rewards
    if high is not None and labelled is not None and _number(high) > 0:
        words = f"{label(high)} gets {high.reward_mean:.2f}; the labelled data's 80th percentile is {labelled.p80:.2f}"
        results.append((words, high.reward_mean >= labelled.p80))
    if low is not None and labelled is not None and _number(low) < 0:
        words = f"{label(low)} gets {low.reward_mean:.2f}; the labelled data's 20th percentile is {labelled.p20:.2f}"
        results.append((words, low.reward_mean <= labelled.p20))
    rivals = [row for row in report.methods if row.score is None and _in_the_papers_table(row)]
    if high is not None and rivals:
        above = all(is_above(high.reward_low, row.reward_high) for row in rivals)
        names = ", ".join(dict.fromkeys(label(row) for row in rivals))
        results.append((f"{label(high)} has its whole interval above those of {names}", above))
    if report.control is not None and report.control.spearman is not None:
        words = f"Spearman of requested and achieved is at least {SPEARMAN_BAR}"
        results.append((words, report.control.spearman >= SPEARMAN_BAR))
    results += checks_by_truth(report, [label(row) for row in report.methods])
    return [ReportCheck(text=text, met=met) for text, met in results]


def _in_the_papers_table(row: MethodRow) -> bool:
    """The paper compares with the baseline and with what learns from the same rewards, one answer each; it claims
    nothing about methods that learn from pairs, or about the best of several answers."""
    return is_usual_baseline(row) or (learns_from_rewards(row.method) and row.best_of is None)


def _number(row: MethodRow) -> float:
    return (row.score.score if row.score is not None else None) or 0.0


def _scored(report: PipelineReport, *, highest: bool) -> MethodRow | None:
    """The row of the highest or lowest requested score."""
    scored = sorted(
        (row for row in report.methods if row.score is not None and row.score.score is not None), key=_number
    )
    if not scored:
        return None
    return scored[-1] if highest else scored[0]
