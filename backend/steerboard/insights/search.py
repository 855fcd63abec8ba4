"""One search over everything of a project that has a page."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Select, String, func, literal, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.accounts.access import Access
from steerboard.arena.tables import Arena
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.ranking.tables import Campaign
from steerboard.evaluation.tables import Evaluation
from steerboard.marks.listing import MarksFilter
from steerboard.marks.schemas import ItemType
from steerboard.marks.service import is_archived
from steerboard.registry.tables import Model
from steerboard.runs.facts.words import runs_with, words_of
from steerboard.runs.tables import Pipeline, Run
from steerboard_contracts.run_kinds import UNLISTED

FoundType = Literal["pipeline", "run", "evaluation", "model", "dataset", "campaign", "arena"]


class SearchResult(BaseModel):
    """`detail`: the kind of thing, or whose it is: `merge, failed`, `reward`, `preferences`."""

    type: FoundType
    id: uuid.UUID
    name: str
    detail: str


def find_everything(session: Session, access: Access, query: str, limit: int) -> list[SearchResult]:
    """The newest of each type first, at most `limit` of them. A blank query finds the newest."""
    text = query.strip()
    results = []
    for type_, statement in _statements(session, access, text, limit):
        for id_, name, detail in session.execute(statement.limit(limit)):
            results.append(SearchResult(type=type_, id=id_, name=name, detail=detail or ""))
    return results


def _statements(
    session: Session, access: Access, text: str, limit: int
) -> Iterator[tuple[FoundType, Select[*tuple[Any, ...]]]]:
    marked = MarksFilter(search=text or None)
    project = access.project.id

    def of(type_: ItemType, table: Any, detail: ColumnElement[Any] | InstrumentedAttribute[Any]) -> Select[Any]:
        # Indexes find the ids before any row is read.
        ids = marked.of(select(table.id).where(table.project_id == project), access, table, type_)
        newest = ids.order_by(table.id.desc()).limit(limit).subquery()
        return select(table.id, table.name, detail).where(table.id.in_(select(newest))).order_by(table.id.desc())

    yield "pipeline", of("pipeline", Pipeline, Pipeline.recipe["name"].astext)
    yield "run", _runs(session, project, text)
    yield "evaluation", of("evaluation", Evaluation, func.left(Evaluation.description, 100))
    yield "model", of("model", Model, func.coalesce(Model.method, Model.role))
    yield "dataset", of("dataset", Dataset, Dataset.kind)
    yield "campaign", _campaigns(project, text)
    arenas: Select[*tuple[Any, ...]] = select(Arena.id, Arena.name, literal("arena", String)).where(
        Arena.project_id == project
    )
    named = Arena.name.icontains(text, autoescape=True)
    yield "arena", arenas.where(named if text else Arena.id.is_not(None)).order_by(Arena.id.desc())


def _runs(session: Session, project: uuid.UUID, text: str) -> Select[Any]:
    whole = func.concat_ws(".", Pipeline.name, Run.name)
    detail = func.concat_ws(", ", func.coalesce(Run.method, Run.kind), Run.state)
    statement = (
        select(Run.id, whole, detail)
        .outerjoin(Pipeline, Pipeline.id == Run.pipeline_id)
        .where(Run.project_id == project, Run.parent_id.is_(None), Run.kind != UNLISTED, ~is_archived(Run.id))
    )
    if text:
        matching = runs_with(session, text)
        # Without a word there are no words to look for, such as in `#1`.
        statement = statement.where(matching if words_of(text) else Run.name.icontains(text, autoescape=True))
    return statement.order_by(Run.id.desc())


def _campaigns(project: uuid.UUID, text: str) -> Select[*tuple[Any, ...]]:
    statement: Select[*tuple[Any, ...]] = (
        select(Campaign.id, Campaign.name, Evaluation.name)
        .join(Evaluation, Evaluation.id == Campaign.evaluation_id)
        .where(Evaluation.project_id == project)
    )
    if text:
        parts = (Campaign.name, Evaluation.name)
        statement = statement.where(or_(*(part.icontains(text, autoescape=True) for part in parts)))
    return statement.order_by(Campaign.id.desc())
