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


_THINGS: dict[FoundType, tuple[Any, ColumnElement[Any] | InstrumentedAttribute[Any]]] = {
    "pipeline": (Pipeline, Pipeline.recipe["name"].astext),
    "evaluation": (Evaluation, func.left(Evaluation.description, 100)),
    "model": (Model, func.coalesce(Model.method, Model.role)),
    "dataset": (Dataset, Dataset.kind),
}
_RUN: Select[*tuple[Any, ...]] = (
    select(
        Run.id,
        func.concat_ws(".", Pipeline.name, Run.name),
        func.concat_ws(", ", func.coalesce(Run.method, Run.kind), Run.state),
    )
    .outerjoin(Pipeline, Pipeline.id == Run.pipeline_id)
    .where(Run.parent_id.is_(None), Run.kind != UNLISTED)
)


def find_everything(session: Session, access: Access, query: str, limit: int) -> list[SearchResult]:
    """The thing of exactly this name, then the newest, at most `limit` of each type. A blank query finds the newest."""
    text = query.strip()
    results = []
    for type_, statement in _statements(session, access, text, limit):
        found = {row[0]: row for row in session.execute(statement.limit(limit))}
        named = _named(type_, access.project.id, text, limit) if text else None
        # However many are newer, a name that is typed in full leads to its thing.
        first = {} if named is None else {row[0]: row for row in session.execute(named)}
        for id_, name, detail in [*(first | found).values()][:limit]:
            results.append(SearchResult(type=type_, id=id_, name=name, detail=detail or ""))
    return results


def _named(type_: FoundType, project: uuid.UUID, text: str, limit: int) -> Select[*tuple[Any, ...]] | None:
    """The thing whose name this is; a stage's is that of its pipeline with its own, or its own alone. None for types of
    which a project has few."""
    if type_ == "run":
        pipeline, _, stage = text.rpartition(".")
        alone, in_pipeline = Run.name == text, (Pipeline.name == pipeline) & (Run.name == stage)
        named = Run.project_id == project, Run.name.in_((text, stage)), or_(alone, in_pipeline)
        return _RUN.where(*named).order_by(Run.id.desc()).limit(limit)
    if type_ not in _THINGS:
        return None
    table, detail = _THINGS[type_]
    return select(table.id, table.name, detail).where(table.project_id == project, table.name == text)


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

    yield "pipeline", of("pipeline", *_THINGS["pipeline"])
    yield "run", _runs(session, project, text)
    yield "evaluation", of("evaluation", *_THINGS["evaluation"])
    yield "model", of("model", *_THINGS["model"])
    yield "dataset", of("dataset", *_THINGS["dataset"])
    yield "campaign", _campaigns(project, text)
    arenas: Select[*tuple[Any, ...]] = select(Arena.id, Arena.name, literal("arena", String)).where(
        Arena.project_id == project
    )
    named = Arena.name.icontains(text, autoescape=True)
    yield "arena", arenas.where(named if text else Arena.id.is_not(None)).order_by(Arena.id.desc())


def _runs(session: Session, project: uuid.UUID, text: str) -> Select[Any]:
    statement = _RUN.where(Run.project_id == project, ~is_archived(Run.id))
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
