"""The report in one screen: which source answers, what it comes to, and what every other source does."""

from __future__ import annotations

from dataclasses import dataclass

from steerboard.evaluation.report.sections.human import human_label
from steerboard.evaluation.report.sections.outcomes import outcome_of
from steerboard.evaluation.report.sections.reservations import reservations
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.comparison import By, Comparison
from steerboard_contracts.report.sections.headline import Headline, SourceHeadline

NOBODY = "No one has assessed the answers yet."


@dataclass(frozen=True)
class Candidate:
    """A source that may answer. `rank`: of its kind, the lowest first; an invalid one has none."""

    by: By
    label: str
    comparison: Comparison
    rank: int | None


def headline(report: EvaluationReport) -> Headline:
    """From the report's own sections. People answer before juries, those before judges, and judges before reward
    models; a jury that is circular only after the judges that are independent of the entrants. Among several of a kind
    those answer that are independent, and then the one with the most items.
    """
    found = _candidates(report)
    sources = [_source_headline(one) for one in found]
    usable = [
        (one.rank, -one.comparison.items, place)
        for place, one in enumerate(found)
        if one.rank is not None and one.comparison.items and len(one.comparison.scores) > 1
    ]
    if not usable:
        return Headline(text=NOBODY, sources=sources)
    place = min(usable)[2]
    answers = sources[place]
    names = [row.entrant for row in found[place].comparison.scores]
    made = Headline(
        **answers.model_dump(),
        over=[name for name in names if name != answers.leader] if answers.leader is not None else [],
        sources=sources,
    )
    made.reservations = reservations(report, made, {(one.by, one.label): one.comparison for one in found if _told(one)})
    return made


def _candidates(report: EvaluationReport) -> list[Candidate]:
    people = [
        Candidate("human", human_label(one.campaign, one.criterion), one.comparison, 0 if one.criterion is None else 1)
        for one in report.human
    ]
    juries = [
        Candidate("jury", one.jury, one.comparison, (4 if one.trained else 2) if one.valid else None)
        for one in report.juries
    ]
    judges = [
        Candidate("judge", one.judge, one.comparison, (5 if one.trained else 3) if one.valid else None)
        for one in report.judges
    ]
    rewards = [Candidate("reward", one.reward_model, one.comparison, 7 if one.trained else 6) for one in report.rewards]
    return people + juries + judges + rewards


def _told(one: Candidate) -> bool:
    return one.rank is not None and one.comparison.items > 0


def _source_headline(one: Candidate) -> SourceHeadline:
    return SourceHeadline(by=one.by, source=one.label, **outcome_of(one.comparison).model_dump())
