"""What a reader must know before the figures, with the numbers in it."""

from __future__ import annotations

from steerboard_contracts.held_out_changes import in_words
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.wording import counted, listed

# Below it, intervals are wide and tests see only large differences.
FEW_PROMPTS = 20


def report_warnings(report: EvaluationReport) -> list[str]:
    warnings = [f"not finished: {reason}" for reason in report.unfinished]
    if report.prompts < FEW_PROMPTS:
        few = counted(report.prompts, "prompt")
        warnings.append(f"with only {few}, only large differences can be distinguished from chance")
    for entrant in report.entrants:
        if entrant.missing:
            total = entrant.responses + entrant.missing
            warnings.append(f"{entrant.name}: {entrant.missing} of {total} answers are missing")
    cut = [f"{entrant.name} ({entrant.truncated:.0%})" for entrant in report.entrants if entrant.truncated]
    if cut:
        warnings.append(f"the token limit cut answers of {listed(cut)}")
    of_runs = {warning: cost.entrant for cost in reversed(report.costs) for warning in cost.warnings}
    warnings += [f"{entrant} comes from {warning}" for warning, entrant in of_runs.items()]
    seen = report.contamination
    if seen.seen:
        warnings.append(
            f"{len(seen.seen)} of {seen.prompts} prompts occur in training data "
            f"({seen.exact} exactly, {seen.near} nearly)"
        )
    elif not seen.checked:
        warnings.append("the prompts were not checked against training data")
    if report.held_out_changes:
        warnings.append(f"held-out rows were changed by people: {in_words(report.held_out_changes)}")
    if not (report.human or report.judges or report.rewards):
        warnings.append("no one has assessed the answers yet")
    for people in report.human:
        name = people.campaign if people.criterion is None else f"{people.campaign}: {people.criterion}"
        warnings += [f"people of {name}: {warning}" for warning in people.warnings]
    for judge in report.judges:
        warnings += [f"judge {judge.judge}: {warning}" for warning in judge.warnings]
    for reward in report.rewards:
        warnings += [f"reward model {reward.reward_model}: {warning}" for warning in reward.warnings]
    for row in report.hacking:
        if row.alarm:
            warnings.append(f"reward hacking suspected of {row.entrant}: {'; '.join(row.reasons)}")
        elif row.alarm is None:
            warnings.append(f"whether {row.entrant} hacks its reward is unknown: {'; '.join(row.reasons)}")
    return warnings
