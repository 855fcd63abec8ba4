"""Tasks waiting for a person in a project.

Each source finds its own things; another kind is one more function in `_SOURCES`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Literal
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from steerboard.accounts.roles import Scope
from steerboard.accounts.tables import Project
from steerboard.datasets.collections.tables import Collection, CollectionRow
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.ranking.progress import progress
from steerboard.evaluation.ranking.tables import Campaign, RankingItem
from steerboard.evaluation.tables import Entrant, Evaluation, RewardAssessment
from steerboard.platform.settings import get_settings
from steerboard.platform.storage.disk import need_room
from steerboard.runs.state.states import DONE
from steerboard.runs.tables import Pipeline, Run
from steerboard_contracts.errors import NoSpaceLeft

FAILED_WITHIN = dt.timedelta(days=7)
MOST_OF_A_KIND = 50


class WaitingLink(BaseModel):
    """The page of the dashboard that has it, and whose."""

    page: Literal["pipeline", "collection", "import", "members", "evaluation", "campaign", "queue"]
    id: UUID


class WaitingItem(BaseModel):
    """One item. `at`: since when it has been waiting."""

    kind: Literal["failed_pipeline", "collection", "import", "sign_in", "failed_evaluation", "campaign", "disk"]
    title: str
    detail: str
    at: dt.datetime
    link: WaitingLink


class WaitingOut(BaseModel):
    items: list[WaitingItem]


Source = Callable[[Session, Project, UUID | None], list[WaitingItem]]


def waiting(session: Session, project: Project, scopes: frozenset[str], user_id: UUID | None = None) -> WaitingOut:
    """All that the caller may read or rank, the newest first. `user_id`: the person who calls, if it is one."""
    sources = [source for scope, source in _SOURCES if scopes & {scope, "admin"}]
    items = [item for source in sources for item in source(session, project, user_id)]
    return WaitingOut(items=sorted(items, key=lambda item: item.at, reverse=True))


def _failed_pipelines(session: Session, project: Project, _user: UUID | None) -> list[WaitingItem]:
    """The pipelines that failed lately and whose recipe has not succeeded since."""
    under_way = aliased(Run)
    failed = Run.state == "failed", Run.parent_id.is_(None)
    at = func.max(Run.ended_at)
    recipe = Pipeline.recipe["name"].astext
    lately = session.execute(
        select(Pipeline.id, recipe.label("recipe"), Pipeline.name, at.label("ended_at"))
        .join(Run, Run.pipeline_id == Pipeline.id)
        .where(
            Run.project_id == project.id,
            *failed,
            Run.ended_at > func.clock_timestamp() - FAILED_WITHIN,
            ~select(under_way.id)
            .where(under_way.pipeline_id == Pipeline.id, under_way.state.in_(("pending", "queued", "running")))
            .exists(),
        )
        .group_by(Pipeline.id)
        .order_by(at.desc())
    ).all()
    succeeded = _last_success(session, project, {row.recipe for row in lately}, {row.id for row in lately})
    rows = [row for row in lately if row.recipe not in succeeded or succeeded[row.recipe] < row.id][:MOST_OF_A_KIND]
    # The first to fail is the cause; the others failed because of it.
    broken = select(Run.pipeline_id, Run.name, Run.reason).where(Run.pipeline_id.in_([row.id for row in rows]), *failed)
    causes = {
        row.pipeline_id: f"{row.name}: {row.reason}"
        for row in session.execute(broken.order_by(Run.ended_at.desc(), Run.id.desc()))
    }
    return [
        WaitingItem(
            kind="failed_pipeline",
            title=f"{row.name} failed",
            detail=causes[row.id],
            at=row.ended_at,
            link=WaitingLink(page="pipeline", id=row.id),
        )
        for row in rows
    ]


def _last_success(session: Session, project: Project, recipes: set[str], failed: set[UUID]) -> dict[str, UUID]:
    """The newest pipeline of each recipe whose stages have all succeeded, among those that began after a failed one."""
    if not failed:
        return {}
    stage, other = aliased(Run), aliased(Run)
    recipe = Pipeline.recipe["name"].astext
    rows = session.execute(
        select(recipe.label("recipe"), Pipeline.id)
        .where(
            Pipeline.project_id == project.id,
            Pipeline.id > min(failed),
            recipe.in_(recipes),
            select(stage.id).where(stage.pipeline_id == Pipeline.id).exists(),
            ~select(other.id)
            .where(other.pipeline_id == Pipeline.id, other.parent_id.is_(None), other.state.not_in(DONE))
            .exists(),
        )
        .order_by(Pipeline.id)
    )
    return {row.recipe: row.id for row in rows}  # the newest of a recipe stays


def _unfrozen_collections(session: Session, project: Project, _user: UUID | None) -> list[WaitingItem]:
    """The collections with rows that no dataset has."""
    count, at = func.count(), func.max(CollectionRow.created_at)
    rows = session.execute(
        select(Collection, count, at)
        .join(CollectionRow, CollectionRow.collection_id == Collection.id)
        .where(
            Collection.project_id == project.id, CollectionRow.removed_at.is_(None), CollectionRow.dataset_id.is_(None)
        )
        .group_by(Collection.id)
        .order_by(at.desc())
        .limit(MOST_OF_A_KIND)
    )
    return [
        WaitingItem(
            kind="collection",
            title=collection.name,
            detail=f"{number} row{'s are' if number > 1 else ' is'} in no dataset yet",
            at=newest,
            link=WaitingLink(page="collection", id=collection.id),
        )
        for collection, number, newest in rows
    ]


def _failed_evaluations(session: Session, project: Project, _user: UUID | None) -> list[WaitingItem]:
    """The evaluations of which a run failed lately and was neither resumed nor replaced."""
    links = [
        select(table.evaluation_id, table.run_id).where(table.run_id.is_not(None))
        for table in (Entrant, RewardAssessment, Judge)
    ]
    runs = links[0].union_all(*links[1:]).subquery()
    rows = session.execute(
        select(Evaluation, Run.name, Run.reason, Run.ended_at)
        .join(runs, runs.c.evaluation_id == Evaluation.id)
        .join(Run, Run.id == runs.c.run_id)
        .where(
            Evaluation.project_id == project.id,
            Run.state == "failed",
            Run.ended_at > func.clock_timestamp() - FAILED_WITHIN,
        )
        # The first to fail is the cause, and comes last, so that it stays.
        .order_by(Run.ended_at.desc(), Run.id.desc())
    )
    causes = {evaluation.id: (evaluation, name, reason, at) for evaluation, name, reason, at in rows}
    return [
        WaitingItem(
            kind="failed_evaluation",
            title=f"{evaluation.name} failed",
            detail=f"{name}: {reason}",
            at=at,
            link=WaitingLink(page="evaluation", id=evaluation.id),
        )
        for evaluation, name, reason, at in list(causes.values())[:MOST_OF_A_KIND]
    ]


def _open_campaigns(session: Session, project: Project, user: UUID | None) -> list[WaitingItem]:
    """The campaigns with items that too few people have ranked, without those that the user has ranked. No name
    reveals whose answers they are."""
    left, items = func.count().filter(RankingItem.rankings < Campaign.overlap), func.count()
    rows = session.execute(
        select(Campaign, left, items)
        .join(RankingItem, RankingItem.campaign_id == Campaign.id)
        .where(Campaign.project_id == project.id, Campaign.state == "open")
        .group_by(Campaign.id)
        .having(left > 0)
        .order_by(Campaign.id.desc())
        .limit(MOST_OF_A_KIND)
    ).all()
    own = {campaign.id: progress(session, campaign.id, user).left for campaign, *_ in rows} if user else {}
    return [
        WaitingItem(
            kind="campaign",
            title=f"Rank answers: {campaign.name}",
            detail=f"{own.get(campaign.id, number)} of {count} items are left" + (" for you" if user else ""),
            at=campaign.created_at,
            link=WaitingLink(page="campaign", id=campaign.id),
        )
        for campaign, number, count in rows
        if own.get(campaign.id, number) > 0
    ]


def _full_disk(_session: Session, project: Project, _user: UUID | None) -> list[WaitingItem]:
    """An item while nothing large can be stored: people who can free space have to know."""
    try:
        need_room(get_settings())
    except NoSpaceLeft as full:
        return [
            WaitingItem(
                kind="disk",
                title="The server's disk is full",
                detail=f"{full.detail} {full.hint}",
                at=dt.datetime.now(dt.UTC),
                link=WaitingLink(page="queue", id=project.id),
            )
        ]
    return []


# Each with the scope that lets one see its things.
_SOURCES: tuple[tuple[Scope, Source], ...] = (
    ("read", _full_disk),
    ("read", _failed_pipelines),
    ("read", _failed_evaluations),
    ("read", _unfrozen_collections),
    ("rank", _open_campaigns),
)
