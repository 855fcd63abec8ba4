"""Table 2 of the paper: every entrant by every source, and its win rates against the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steerboard.evaluation.report.sections.headline import headline
from steerboard.evaluation.report.sections.human import human_label
from steerboard.evaluation.report.sections.reward_hacking import hacking_rows
from steerboard.evaluation.report.sections.warnings import report_warnings
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.methods import baseline_methods
from steerboard_contracts.report.baseline import baseline_place
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport, MethodsRow
from steerboard_contracts.report.sections.comparison import Comparison, PairRow, pair_of, score_of
from steerboard_contracts.report.sections.entrants import EntrantRow


def baseline_of(entrants: list[EntrantRow], named: str | None = None) -> str | None:
    """The entrant that others are compared with: the one named, else the one called like the method that is the
    baseline of others, else by `baseline_place`, else the first. Raises `BadInput` (`unknown_entrant`) for an unknown
    name."""
    names = [entrant.name for entrant in entrants]
    if named is not None:
        if named not in names:
            raise BadInput(
                f"there is no entrant {named!r}; there are {', '.join(names) or 'none'}",
                code="unknown_entrant",
                errors=[ErrorLocation(location="baseline", message="name an entrant of this evaluation")],
            )
        return named
    called = next((name for name in names if name in baseline_methods()), None)
    if called is not None or not names:
        return called
    return names[baseline_place(entrants) or 0]


def methods_rows(report: EvaluationReport, baseline: str | None) -> list[MethodsRow]:
    """The rows from the report's own sections. Win rates of the baseline against itself are left out."""
    people = [(human_label(section.campaign, section.criterion), section.comparison) for section in report.human]
    juries = [(section.jury, section.comparison) for section in report.juries if section.valid]
    judges = [(section.judge, section.comparison) for section in report.judges]
    rewards = [(section.reward_model, section.comparison) for section in report.rewards]
    return [
        MethodsRow(
            entrant=entrant.name,
            method=entrant.method,
            score=entrant.score,
            length=entrant.length,
            reward=_means(rewards, entrant.name),
            reward_win_rate=_win_rates(rewards, entrant.name, baseline),
            judge=_means(judges, entrant.name),
            judge_win_rate=_win_rates(judges, entrant.name, baseline),
            human=_means(people, entrant.name),
            human_win_rate=_win_rates(people, entrant.name, baseline),
            jury=_means(juries, entrant.name),
            jury_win_rate=_win_rates(juries, entrant.name, baseline),
            reward_length_matched=_length_matched(rewards, entrant.name, baseline),
            judge_length_matched=_length_matched(judges, entrant.name, baseline),
            human_length_matched=_length_matched(people, entrant.name, baseline),
            jury_length_matched=_length_matched(juries, entrant.name, baseline),
            reward_length_adjusted=_length_adjusted(rewards, entrant.name, baseline),
            judge_length_adjusted=_length_adjusted(judges, entrant.name, baseline),
            human_length_adjusted=_length_adjusted(people, entrant.name, baseline),
            jury_length_adjusted=_length_adjusted(juries, entrant.name, baseline),
        )
        for entrant in report.entrants
    ]


def against(report: EvaluationReport, baseline: str | None) -> EvaluationReport:
    """The same report with a baseline, on which only the alarm and what is made of it depend. Raises like
    `baseline_of`."""
    chosen = baseline_of(report.entrants, baseline)
    rebased = report.model_copy(update={"baseline": chosen, "methods": methods_rows(report, chosen)})
    rebased.hacking = hacking_rows(rebased, chosen)
    rebased.warnings = report_warnings(rebased)
    rebased.headline = headline(rebased)
    return rebased


def _means(sources: Iterable[tuple[str, Comparison]], entrant: str) -> dict[str, Estimate]:
    means = ((label, score_of(comparison, entrant)) for label, comparison in sources)
    return {label: mean for label, mean in means if mean is not None and mean.n}


def _win_rates(sources: Iterable[tuple[str, Comparison]], entrant: str, baseline: str | None) -> dict[str, Estimate]:
    return {label: row.win_rate for label, row in _pairs(sources, entrant, baseline) if row.win_rate.n}


def _length_matched(
    sources: Iterable[tuple[str, Comparison]], entrant: str, baseline: str | None
) -> dict[str, Estimate]:
    pairs = _pairs(sources, entrant, baseline)
    return {label: row.length_matched for label, row in pairs if row.length_matched is not None and row.win_rate.n}


def _length_adjusted(
    sources: Iterable[tuple[str, Comparison]], entrant: str, baseline: str | None
) -> dict[str, Estimate]:
    pairs = _pairs(sources, entrant, baseline)
    return {label: row.length_adjusted for label, row in pairs if row.length_adjusted is not None and row.win_rate.n}


def _pairs(
    sources: Iterable[tuple[str, Comparison]], entrant: str, baseline: str | None
) -> Iterator[tuple[str, PairRow]]:
    if baseline is None or entrant == baseline:
        return
    for label, comparison in sources:
        row = pair_of(comparison, entrant, baseline)
        if row is not None:
            yield label, row
