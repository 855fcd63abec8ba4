"""Preference datasets from people's rankings and judges' verdicts, to train the next reward model on."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.pairs import register_pairs
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.preferences.agreement import by_majority
from steerboard.evaluation.preferences.pairs import Choice, Pair, judged_pairs, ranked_pairs
from steerboard.evaluation.preferences.rows import PairRows
from steerboard.evaluation.preferences.schemas import (
    PreferencesChoice,
    PreferencesCreate,
    PreferenceSource,
    PreferencesPreview,
)
from steerboard.evaluation.ranking.campaigns.service import get_campaign
from steerboard.evaluation.ranking.tables import Campaign, RankingTask
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.names import check_name
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.samples import Message, is_held_out, prompt_hash


def create(session: Session, project: Project, evaluation: Evaluation, given: PreferencesCreate, actor: str) -> Dataset:
    """One row per pair, in the order of the sources, prompts and annotators; with who decided it, when, and on what.

    Raises `BadInput` (`invalid_name`, `unknown_criterion`), `NotFound`, `EmptySelection` where nothing is preferred.
    """
    sources = _sources(session, evaluation, given)
    base = check_name(given.name or f"{evaluation.name}-preferences")
    # One at a time, or two calls would choose the same number.
    session.execute(select(Evaluation.id).where(Evaluation.id == evaluation.id).with_for_update(key_share=True))
    rows = PairRows(session, evaluation, given.min_agreement)
    rows.count_votes(_votes(session, sources, given, rows.order))

    def origin() -> dict[str, Any]:
        return {
            "type": "evaluation",
            "evaluation": {"id": str(evaluation.id), "name": evaluation.name, "version": evaluation.version},
            "sources": [_about(source) for source in sources],
            "pairs": given.pairs,
            "criterion": given.criterion,
            "votes": given.votes,
            "min_agreement": given.min_agreement,
            "agreement": rows.mean_agreement,
            "contested": rows.contested,
            "actor": actor,
        }

    return register_pairs(
        session,
        project,
        base,
        rows.of(_all_pairs(session, sources, given, rows)),
        origin=origin,
        left_out=rows.left_out,
        split=given.split,
        hint="Wait for rankings or verdicts that are not all ties, or ask for less agreement.",
    )


def preview(session: Session, project: Project, evaluation: Evaluation, given: PreferencesChoice) -> PreferencesPreview:
    """How many pairs there are, and how many the project's split holds out. Raises as `create`, except for the name."""
    rows = PairRows(session, evaluation, given.min_agreement)
    sources = _sources(session, evaluation, given)
    rows.count_votes(_votes(session, sources, given, rows.order))
    held_out = 0
    prompts: dict[bool, set[int]] = {True: set(), False: set()}
    for row in rows.of(_all_pairs(session, sources, given, rows)):
        hash64 = prompt_hash([Message.model_validate(message) for message in row["prompt"]], project.split_salt)
        out = is_held_out(hash64, project.held_out_fraction)
        prompts[out].add(hash64)
        held_out += out
    return PreferencesPreview(
        pairs=rows.written,
        held_out_pairs=held_out,
        prompts=len(prompts[True]) + len(prompts[False]),
        held_out_prompts=len(prompts[True]),
        left_out=dict(rows.left_out),
        sources=[source.name for source in sources],
        compared=len(rows.ballots),
        contested=rows.contested,
        agreement=rows.mean_agreement,
    )


def _sources(session: Session, evaluation: Evaluation, given: PreferencesChoice) -> list[Campaign | Judge]:
    if given.sources is None:
        return _all_sources(session, evaluation, given.criterion)
    sources = [_source(session, evaluation, source) for source in given.sources]
    for source in sources:
        if isinstance(source, Campaign):
            _check_criterion(session, source, given.criterion)
    return sources


def _all_sources(session: Session, evaluation: Evaluation, criterion: str | None) -> list[Campaign | Judge]:
    """Those that have anything by this criterion; judges have none. Raises `EmptySelection`."""
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
    found = [*campaigns, *(judges if criterion is None else ())]
    if not found:
        by_words = "" if criterion is None else f" by {criterion!r}"
        raise EmptySelection(
            f"no one has ranked the answers of {evaluation.name!r}{by_words}, and no judge has compared them",
            hint="Start a campaign or a judge; `steerboard evaluations show NAME` lists those that exist.",
        )
    return found


def _source(session: Session, evaluation: Evaluation, given: PreferenceSource) -> Campaign | Judge:
    if given.campaign is not None:
        return get_campaign(session, evaluation, given.campaign)
    return get_judge(session, evaluation, given.judge or "")


def _all_pairs(
    session: Session, sources: Iterable[Campaign | Judge], given: PreferencesChoice, rows: PairRows
) -> Iterator[Pair]:
    if given.votes == "majority":
        yield from by_majority(rows.ballots)
        return
    for source in sources:
        yield from _pairs(session, source, given.criterion, given.pairs, rows.order)


def _votes(
    session: Session, sources: Iterable[Campaign | Judge], given: PreferencesChoice, order: dict[uuid.UUID, int]
) -> Iterator[Pair]:
    """What agreement is counted over: every two answers that anyone compared; with the majority of best against worst
    only what was best and worst to someone."""
    pairs: Choice = "best_worst" if (given.votes, given.pairs) == ("majority", "best_worst") else "votes"
    for source in sources:
        yield from _pairs(session, source, given.criterion, pairs, order)


def _pairs(
    session: Session, source: Campaign | Judge, criterion: str | None, pairs: Choice, order: dict[uuid.UUID, int]
) -> Iterator[Pair]:
    if isinstance(source, Campaign):
        return ranked_pairs(session, source, criterion, pairs)
    return judged_pairs(session, source, order, pairs)


def _about(source: Campaign | Judge) -> dict[str, str]:
    if isinstance(source, Campaign):
        return {"kind": "campaign", "id": str(source.id), "name": source.name}
    return {"kind": "judge", "id": str(source.id), "name": source.name, "model": source.model, "style": source.style}


def _check_criterion(session: Session, campaign: Campaign, criterion: str | None) -> None:
    names = [one["name"] for one in campaign.criteria]
    hint = f"The criteria of {campaign.name!r}: {', '.join(names) or 'none'}."
    if criterion is not None and criterion not in names:
        raise BadInput(f"{campaign.name!r} has no criterion {criterion!r}", code="unknown_criterion", hint=hint)
    if criterion is None and names:
        overall = select(func.count()).where(RankingTask.campaign_id == campaign.id, RankingTask.ranks.is_not(None))
        if not session.scalar(overall):
            raise BadInput(f"{campaign.name!r} was ranked by criteria only", code="unknown_criterion", hint=hint)
