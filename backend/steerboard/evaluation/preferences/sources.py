"""Whose word makes pairs: campaigns, and the judges that count as far as they do in the report."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.presenters import judges_out
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.preferences.pairs import Choice, PreferenceVote, judged_pairs, ranked_pairs
from steerboard.evaluation.preferences.schemas import PreferencesChoice, PreferenceSource
from steerboard.evaluation.ranking.campaigns.service import get_campaign
from steerboard.evaluation.ranking.tables import Campaign, RankingTask
from steerboard.evaluation.report.loading.verdicts import verdicts_of
from steerboard.evaluation.report.sections.judging.validity import invalid_entrants
from steerboard.evaluation.tables import Evaluation
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_statistics.validity import UNUSABLE_THRESHOLD


@dataclass(frozen=True)
class JudgeSource:
    """A judge. `named`: someone asked for this one, which is taken as it is. `invalid_because`: it counts for nothing;
    `silent`: entrants on which it does not count."""

    judge: Judge
    named: bool = False
    invalid_because: str | None = None
    silent: Collection[uuid.UUID] = ()


@dataclass(frozen=True)
class Sources:
    """The sources in their order: campaigns, then judges, unless they are named."""

    every: list[Campaign | JudgeSource] = field(default_factory=list)

    @property
    def left_out(self) -> dict[str, str]:
        """Judges that do not count, with the reason."""
        judges = [source for source in self.every if isinstance(source, JudgeSource)]
        return {source.judge.name: source.invalid_because for source in judges if source.invalid_because is not None}

    @property
    def taken(self) -> list[Campaign | Judge]:
        return [
            source.judge if isinstance(source, JudgeSource) else source
            for source in self.every
            if not isinstance(source, JudgeSource) or source.invalid_because is None
        ]

    def names(self) -> list[str]:
        return [source.name for source in self.taken]

    def about(self) -> list[dict[str, str]]:
        """What the dataset's origin holds."""
        return [_about(source) for source in self.taken]

    def pairs(
        self, session: Session, criterion: str | None, pairs: Choice, order: Mapping[uuid.UUID, int]
    ) -> Iterator[PreferenceVote]:
        for source in self.every:
            if isinstance(source, Campaign):
                yield from ranked_pairs(session, source, criterion, pairs)
                continue
            made = judged_pairs(session, source.judge, order, pairs, silent=source.silent, whole=source.named)
            if source.invalid_because is None:
                yield from made
            else:
                yield from (replace(pair, unfit="judge_not_valid") for pair in made)


def sources_of(session: Session, evaluation: Evaluation, given: PreferencesChoice) -> Sources:
    """The sources that are named, or all. Raises `NotFound`, `BadInput` (`unknown_criterion`), `EmptySelection`."""
    if given.sources is None:
        return _all_sources(session, evaluation, given.criterion)
    named = [_named(session, evaluation, source) for source in given.sources]
    for source in named:
        if isinstance(source, Campaign):
            _check_criterion(session, source, given.criterion)
    return Sources(named)


def _all_sources(session: Session, evaluation: Evaluation, criterion: str | None) -> Sources:
    """The sources that have anything by this criterion; judges have none. Raises `EmptySelection`."""
    by = RankingTask.ranks if criterion is None else RankingTask.criteria_ranks[criterion]
    campaigns = session.scalars(
        select(Campaign)
        .where(
            Campaign.evaluation_id == evaluation.id,
            select(RankingTask.id)
            .where(RankingTask.campaign_id == Campaign.id, RankingTask.state == "submitted", by.is_not(None))
            .exists(),
        )
        .order_by(Campaign.id)
    )
    judges = session.scalars(
        select(Judge)
        .where(
            Judge.evaluation_id == evaluation.id,
            select(Verdict.id).where(Verdict.judge_id == Judge.id, Verdict.status == "ok").exists(),
        )
        .order_by(Judge.id)
    )
    every: list[Campaign | JudgeSource] = list(campaigns)
    if criterion is None:
        every += [_assessed(session, evaluation, judge) for judge in judges]
    if not every:
        by_words = "" if criterion is None else f" by {criterion!r}"
        raise EmptySelection(
            f"no one has ranked the answers of {evaluation.name!r}{by_words}, and no judge has compared them",
            hint="Start a campaign or a judge; `steerboard evaluations show NAME` lists those that exist.",
        )
    return Sources(every)


def _assessed(session: Session, evaluation: Evaluation, judge: Judge) -> JudgeSource:
    """How far a judge counts, which no one has asked for by its name."""
    (shown,) = judges_out(session, evaluation, judge)
    if shown.invalid_because is not None:
        return JudgeSource(judge, invalid_because=shown.invalid_because)
    given = judge.settings.get("unparsed_threshold")
    verdicts = verdicts_of(session, evaluation, judge)
    silent = invalid_entrants(verdicts, UNUSABLE_THRESHOLD if given is None else float(given))
    entrants = [entrant.id for entrant in entrants_of(session, evaluation)]
    return JudgeSource(judge, silent=frozenset(entrants[column] for column in silent))


def _named(session: Session, evaluation: Evaluation, given: PreferenceSource) -> Campaign | JudgeSource:
    if given.campaign is not None:
        return get_campaign(session, evaluation, given.campaign)
    return JudgeSource(get_judge(session, evaluation, given.judge or ""), named=True)


def _about(source: Campaign | Judge) -> dict[str, str]:
    if isinstance(source, Campaign):
        return {"kind": "campaign", "id": str(source.id), "name": source.name}
    return {"kind": "judge", "id": str(source.id), "name": source.name, "model": source.model, "style": source.style}


def _check_criterion(session: Session, campaign: Campaign, criterion: str | None) -> None:
    names = [listed["name"] for listed in campaign.criteria]
    hint = f"The criteria of {campaign.name!r}: {', '.join(names) or 'none'}."
    if criterion is not None and criterion not in names:
        raise BadInput(f"{campaign.name!r} has no criterion {criterion!r}", code="unknown_criterion", hint=hint)
    if criterion is None and names:
        overall = select(func.count()).where(RankingTask.campaign_id == campaign.id, RankingTask.ranks.is_not(None))
        if not session.scalar(overall):
            raise BadInput(f"{campaign.name!r} was ranked by criteria only", code="unknown_criterion", hint=hint)
