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
    """The headline from the report's own sections. People answer before juries, those before judges, and judges before
    reward models; those that are circular answer only after all that are independent of the entrants. Among several of
    a kind the one with the most items answers."""
    candidates = _candidates(report)
    sources = [_source_headline(candidate) for candidate in candidates]
    usable = [
        (candidate.rank, -candidate.comparison.items, place)
        for place, candidate in enumerate(candidates)
        if candidate.rank is not None and candidate.comparison.items and len(candidate.comparison.scores) > 1
    ]
    if not usable:
        return Headline(text=NOBODY, sources=sources)
    place = min(usable)[2]
    answers = sources[place]
    names = [row.entrant for row in candidates[place].comparison.scores]
    made = Headline(
        **answers.model_dump(),
        over=[name for name in names if name != answers.leader] if answers.leader is not None else [],
        sources=sources,
    )
    made.reservations = reservations(
        report,
        made,
        {(candidate.by, candidate.label): candidate.comparison for candidate in candidates if _is_known(candidate)},
    )
    return made


def _candidates(report: EvaluationReport) -> list[Candidate]:
    people = [
        Candidate(
            "human", human_label(human.campaign, human.criterion), human.comparison, 0 if human.criterion is None else 1
        )
        for human in report.human
    ]
    juries = [
        Candidate("jury", jury.jury, jury.comparison, (5 if jury.trained else 2) if jury.valid else None)
        for jury in report.juries
    ]
    judges = [
        Candidate("judge", judge.judge, judge.comparison, (6 if judge.trained else 3) if judge.valid else None)
        for judge in report.judges
    ]
    rewards = [
        Candidate("reward", reward.reward_model, reward.comparison, 7 if reward.trained else 4)
        for reward in report.rewards
    ]
    return people + juries + judges + rewards


def _is_known(candidate: Candidate) -> bool:
    return candidate.rank is not None and candidate.comparison.items > 0


def _source_headline(candidate: Candidate) -> SourceHeadline:
    return SourceHeadline(by=candidate.by, source=candidate.label, **outcome_of(candidate.comparison).model_dump())
