"""Campaigns, their annotators and rankings, for people who may know the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import User
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.ranking.campaigns.schemas import (
    AnnotatorFigures,
    CampaignOut,
    CampaignState,
    Criterion,
    FlagOut,
    RankingOut,
    TaskType,
)
from steerboard.evaluation.ranking.campaigns.service import entrant_names, telling_words
from steerboard.evaluation.ranking.campaigns.span_rows import named_spans
from steerboard.evaluation.ranking.counted import decided
from steerboard.evaluation.ranking.qualification import right_pairs
from steerboard.evaluation.ranking.questions import questions_of
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.evaluation.tables import Evaluation, EvaluationPrompt

_MOST_FLAGS = 1_000
_WRITTEN_AT_ONCE = 500


def campaigns_out(session: Session, evaluation: Evaluation) -> list[CampaignOut]:
    """Oldest first."""
    campaigns = session.scalars(select(Campaign).where(Campaign.evaluation_id == evaluation.id).order_by(Campaign.id))
    return [campaign_out(session, campaign) for campaign in campaigns]


def campaign_out(session: Session, campaign: Campaign) -> CampaignOut:
    names = entrant_names(session, campaign)
    ruled = decided(RankingItem.id)
    items, done, gold, rankings, disagreements, adjudicated = session.execute(
        select(
            func.count(),
            func.count().filter(RankingItem.rankings >= campaign.overlap),
            func.count(RankingItem.gold),
            func.coalesce(func.sum(RankingItem.rankings), 0),
            func.count().filter(RankingItem.disagreement > 0, RankingItem.gold.is_(None), ~ruled),
            func.count().filter(ruled),
        ).where(RankingItem.campaign_id == campaign.id)
    ).one()
    annotators = _annotators(session, campaign)
    return CampaignOut(
        id=campaign.id,
        name=campaign.name,
        state=cast(CampaignState, campaign.state),
        task_type=cast(TaskType, campaign.task_type),
        instructions=campaign.instructions,
        criteria=[Criterion.model_validate(criterion) for criterion in campaign.criteria],
        entrants=list(names.values()),
        overlap=campaign.overlap,
        lock_seconds=campaign.lock_seconds,
        gold_every=campaign.gold_every,
        qualify_items=campaign.qualify_items,
        qualify_share=campaign.qualify_share,
        span_labels=campaign.span_labels,
        questions=questions_of(campaign.questions),
        judge=session.scalar(select(Judge.name).where(Judge.id == campaign.judge_id)),
        items=items,
        done_items=done,
        gold_items=gold,
        rankings=rankings,
        disagreements=disagreements,
        adjudicated=adjudicated,
        skipped_by_all=_skipped_by_all(session, campaign, len(annotators)),
        annotators=annotators,
        warnings=[*telling_words(campaign, names.values()), *_too_little_gold(campaign, gold)],
        created_by=campaign.created_by,
        created_at=campaign.created_at,
    )


def _annotators(session: Session, campaign: Campaign) -> list[AnnotatorFigures]:
    """Everyone who was given an item, by name."""
    submitted = RankingTask.state == "submitted"
    rows = session.execute(
        select(
            User.name,
            func.count().filter(submitted),
            func.count().filter(RankingTask.state == "skipped"),
            func.count(RankingTask.flag),
            func.percentile_cont(0.5).within_group(RankingTask.seconds).filter(submitted),
            func.max(RankingTask.submitted_at),
        )
        .join(User, User.id == RankingTask.user_id)
        .where(RankingTask.campaign_id == campaign.id)
        .group_by(User.name)
        .order_by(User.name)
    ).all()
    gold = _gold_shares(session, campaign)
    made = []
    for name, done, skipped, flagged, seconds, last_at in rows:
        right, pairs = gold.get(name, (0.0, 0))
        made.append(
            AnnotatorFigures(
                annotator=name,
                done=done,
                skipped=skipped,
                flagged=flagged,
                median_seconds=seconds,
                gold=right / pairs if pairs else None,
                gold_pairs=pairs,
                last_at=last_at,
            )
        )
    return made


def _gold_shares(session: Session, campaign: Campaign) -> dict[str, tuple[float, int]]:
    """Annotator to (pairs in the known order, ties counting 1/2; pairs), over all rankings of gold items."""
    tasks = session.execute(
        select(User.name, RankingTask, RankingItem.gold)
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .join(User, User.id == RankingTask.user_id)
        .where(
            RankingItem.campaign_id == campaign.id,
            RankingItem.gold.is_not(None),
            RankingTask.state == "submitted",
        )
    )
    shares: dict[str, tuple[float, int]] = {}
    for name, task, gold in tasks:
        right, pairs = shares.get(name, (0.0, 0))
        for share in right_pairs(task, gold or {}):
            right, pairs = right + share, pairs + 1
        shares[name] = right, pairs
    return shares


def _too_little_gold(campaign: Campaign, gold: int) -> list[str]:
    if gold >= campaign.qualify_items:
        return []
    return [f"the qualification asks for {campaign.qualify_items} gold items, and there are {gold}: annotators wait"]


def _skipped_by_all(session: Session, campaign: Campaign, annotators: int) -> int:
    """Items that lack rankings, and that everyone who was given one has skipped."""
    if annotators == 0:
        return 0
    skipped = (
        select(RankingTask.item_id)
        .where(RankingTask.campaign_id == campaign.id, RankingTask.state == "skipped")
        .group_by(RankingTask.item_id)
        .having(func.count() >= annotators)
    )
    return (
        session.scalar(select(func.count()).where(RankingItem.id.in_(skipped), RankingItem.rankings < campaign.overlap))
        or 0
    )


def rankings_out(session: Session, campaign: Campaign, tasks: Sequence[RankingTask]) -> list[RankingOut]:
    names = entrant_names(session, campaign)
    spans = named_spans(session, [task.id for task in tasks])
    about = {
        id_: (position, question_id, annotator, gold)
        for id_, position, question_id, annotator, gold in session.execute(
            _about(campaign).where(RankingTask.id.in_([task.id for task in tasks]))
        )
    }
    made = []
    for task in tasks:
        position, question_id, annotator, gold = about[task.id]
        shown = [names[id_] for id_ in task.shown]
        made.append(
            RankingOut(
                id=task.id,
                position=position,
                question_id=question_id,
                annotator=annotator,
                shown=shown,
                ranks=dict(zip(shown, task.ranks, strict=True)) if task.ranks else None,
                criteria_ranks=_by_name(shown, task.criteria_ranks),
                scores=_by_name(shown, task.scores),
                both_bad=task.both_bad,
                correction=task.correction,
                replies=task.replies or {},
                comment=task.comment,
                flag=task.flag,
                spans=spans.get(task.id, []),
                suggestion_visible=task.suggestion_visible,
                seconds=task.seconds,
                gold=gold is not None,
                submitted_at=task.submitted_at,
            )
        )
    return made


def write_rankings(session: Session, campaign: Campaign, file: BinaryIO) -> None:
    """Every submission as a line of JSON, by prompt and annotator."""
    tasks = session.scalars(
        select(RankingTask)
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .join(User, User.id == RankingTask.user_id)
        .where(RankingTask.campaign_id == campaign.id, RankingTask.state == "submitted")
        .order_by(RankingItem.position, User.name)
    ).all()
    for start in range(0, len(tasks), _WRITTEN_AT_ONCE):
        for ranking in rankings_out(session, campaign, tasks[start : start + _WRITTEN_AT_ONCE]):
            file.write(ranking.model_dump_json().encode() + b"\n")


def _by_name(shown: list[str], values: dict[str, list[int]] | None) -> dict[str, dict[str, int]]:
    return {criterion: dict(zip(shown, given, strict=True)) for criterion, given in (values or {}).items()}


def flags_of(session: Session, campaign: Campaign) -> list[FlagOut]:
    """Newest first."""
    reported = or_(RankingTask.flag.is_not(None), RankingTask.state == "skipped")
    rows = session.execute(
        _about(campaign)
        .add_columns(RankingTask.flag, RankingTask.skip_reason, RankingTask.comment, RankingTask.submitted_at)
        .where(reported)
        .order_by(RankingTask.submitted_at.desc())
        .limit(_MOST_FLAGS)
    )
    return [
        FlagOut(
            position=row.position,
            question_id=row.question_id,
            annotator=row.name,
            kind="flag" if row.flag is not None else "skip",
            reason=row.flag if row.flag is not None else row.skip_reason or "",
            comment=row.comment,
            at=row.submitted_at,
        )
        for row in rows
    ]


def _about(campaign: Campaign) -> Any:
    """(task id, position, question_id, annotator's name, gold) of each task."""
    return (
        select(RankingTask.id, RankingItem.position, EvaluationPrompt.question_id, User.name, RankingItem.gold)
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .join(
            EvaluationPrompt,
            (EvaluationPrompt.position == RankingItem.position)
            & (EvaluationPrompt.evaluation_id == campaign.evaluation_id),
        )
        .join(User, User.id == RankingTask.user_id)
        .where(RankingTask.campaign_id == campaign.id)
    )
