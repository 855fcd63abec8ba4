"""The list of runs over HTTP: filtered, sorted, with columns, views, tags and notes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.marks import views
from steerboard.marks.tables import SavedView
from steerboard.platform.filters.parser import parse
from steerboard.platform.http import downloads
from steerboard.platform.http.downloads import Download
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page
from steerboard.runs.listing import run_table
from steerboard.runs.listing.fields import RUN_FIELDS, Fields
from steerboard.runs.listing.order import NEWEST
from steerboard.runs.listing.page import RunsQuery, runs_page
from steerboard.runs.listing.rows import columns_of, rows_of
from steerboard.runs.listing.schemas import ColumnName, RunRow, View, ViewIn
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.state.transitions import RunState
from steerboard.runs.tables import Run
from steerboard_contracts.fields import RunKind
from steerboard_contracts.metric_direction import better

router = Router(tags=["runs"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]

_Kinds = Annotated[list[RunKind], Query()]
_States = Annotated[list[RunState], Query()]
_OfPipeline = Annotated[str | None, Query(description="Id or name.")]
_FILTER = "Such as `state:failed eval_loss < 1.2 tag:good -judge`; docs/runs.md describes it."
_Filter = Annotated[str, Query(description=_FILTER)]
_SORT = "A field of a filter, with `-` before it for the highest first."
_Sort = Annotated[str, Query(max_length=211, description=_SORT)]
_TABLE_COLUMNS = "Fields, or `key_metric` for its name and value; by default those of the page."


@router.get("/runs", responses=problems(404, 422))
def list_runs(
    session: Db,
    access: Reader,
    state: _States = [],  # noqa: B006
    kind: _Kinds = [],  # noqa: B006
    pipeline: _OfPipeline = None,
    filter: _Filter = "",
    sort: _Sort = NEWEST,
    column: Annotated[list[str], Query(max_length=40, description="Fields whose `values` are wanted.")] = [],  # noqa: B006
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Page[RunRow]:
    """The newest first, unless sorted otherwise. Shards are shown with their run, archived runs where the filter has
    `is:archived`."""
    columns = columns_of(Fields(session, access.project.id), column)
    query = RunsQuery(filter, sort, _only(session, access, state, kind, pipeline), every_kind=bool(kind))
    runs, following = runs_page(session, access.project, access.owner, query, cursor=cursor, limit=limit)
    return Page(items=rows_of(session, access.owner, runs, columns), next=following)


@router.get("/run-table", response_class=Download, responses=problems(404, 422))
def download_run_table(
    session: Db,
    access: Reader,
    state: _States = [],  # noqa: B006
    kind: _Kinds = [],  # noqa: B006
    pipeline: _OfPipeline = None,
    filter: _Filter = "",
    sort: _Sort = NEWEST,
    column: Annotated[list[str], Query(max_length=41, description=_TABLE_COLUMNS)] = [],  # noqa: B006
) -> Download:
    """All runs of the list, not only a page of them, as CSV: `run`, `id`, `tags`, then the columns. Texts that a
    spreadsheet would take for a formula begin with an apostrophe."""
    query = RunsQuery(filter, sort, _only(session, access, state, kind, pipeline), every_kind=bool(kind))
    write = run_table.writer_of(session, access, query, column)
    return downloads.made(write, f"{access.project.name}-runs.csv", "text/csv; charset=utf-8")


def _only(
    session: Session, access: Access, state: list[RunState], kind: list[RunKind], pipeline: str | None
) -> tuple[ColumnElement[bool], ...]:
    only: list[ColumnElement[bool]] = []
    if state:
        only.append(Run.state.in_(state))
    if kind:
        only.append(Run.kind.in_(kind))
    if pipeline:
        only.append(Run.pipeline_id == pipelines.get_pipeline(session, access.project, pipeline).id)
    return tuple(only)


@router.get("/run-columns", responses=problems(404))
def list_columns(session: Db, access: Reader) -> list[ColumnName]:
    """What runs of the project can be filtered by, and shown and sorted by: the fields of every run, then settings,
    metrics and results that some run has."""
    of_runs = [
        ColumnName(
            name=field.name,
            source="run",
            about=field.about,
            numbers=field.kind in ("number", "duration", "time"),
            sortable=field.sortable,
        )
        for field in RUN_FIELDS.values()
    ]
    seen = set(RUN_FIELDS)
    facts = []
    for fact in Fields(session, access.project.id).facts:
        name = fact.key if fact.key not in seen else f"{fact.source}.{fact.key}"
        seen.add(fact.key)
        way = better(fact.key) if fact.source == "metric" else None
        facts.append(ColumnName(name=name, source=fact.source, numbers=fact.numbers, sortable=True, better=way))
    return [*of_runs, *facts]


@router.get("/run-views", responses=problems(404))
def list_views(session: Db, access: Reader) -> list[View]:
    """The views of the list that the project keeps, by name."""
    return [_view(row) for row in views.views_of(session, access.project, "runs")]


@router.put("/run-views/{view}", responses=problems(404, 409, 422))
def keep_view(view: str, body: ViewIn, session: Db, access: Runner) -> View:
    """Keep a filter, a sort and columns under a name, in place of what the name had."""
    parse(body.query.filter)
    kept = views.keep(session, access, "runs", view, body.query)
    audit(session, access, "run_view.keep", f"view {view}", body.query.model_dump())
    return _view(kept)


@router.delete("/run-views/{view}", status_code=204, responses=problems(404))
def delete_view(view: str, session: Db, access: Runner) -> None:
    """Delete a view. Its runs are not touched."""
    views.remove(session, access.project, "runs", view)
    audit(session, access, "run_view.delete", f"view {view}")


def _view(row: SavedView) -> View:
    return View.model_validate(row, from_attributes=True)
