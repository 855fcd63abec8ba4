"""Pipelines over HTTP. Starting one is in recipes/api.py."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.marks.listing import MarksFilter
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, named, paginate
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.pipelines.report import pipeline_report
from steerboard.runs.schemas.runs import PipelineDetail, PipelineSummary
from steerboard.runs.tables import Pipeline
from steerboard_contracts.report.pipeline import PipelineReport

router = Router(tags=["pipelines"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.get("/pipelines", responses=problems(422))
def list_pipelines(
    session: Db,
    access: Reader,
    marks: Annotated[MarksFilter, Depends()],
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Page[PipelineSummary]:
    """The newest first, each with its state and the number of its stages in each state."""
    return paginate(
        session,
        marks.of(named(pipelines.pipelines_of(access.project), Pipeline, name), access, Pipeline, "pipeline"),
        Pipeline.id,
        lambda row: pipelines.summaries(session, [row.id])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda rows: pipelines.summaries(session, [row.id for row in rows]),
        searched=bool(marks.search or name),
    )


@router.get("/pipelines/{pipeline}", responses=problems(404))
def get_pipeline(pipeline: str, session: Db, access: Reader) -> PipelineDetail:
    """A pipeline with its stages in order, its recipe as written and what was set."""
    return pipelines.detail(session, pipelines.get_pipeline(session, access.project, pipeline))


@router.post("/pipelines/{pipeline}/cancel", responses=problems(404))
def cancel_pipeline(pipeline: str, session: Db, access: Runner) -> PipelineDetail:
    """Cancel every stage that has not ended. Calling it again, or at the end, changes nothing."""
    row = pipelines.get_pipeline(session, access.project, pipeline)
    stages = pipelines.cancel(session, row, access.actor)
    audit(session, access, "pipeline.cancel", f"pipeline {row.name} {row.id}", {"stages": stages})
    session.expire_all()
    return pipelines.detail(session, row)


@router.post("/pipelines/{pipeline}/resume", responses=problems(404, 409))
def resume_pipeline(pipeline: str, session: Db, access: Runner) -> PipelineDetail:
    """Resume every stage that failed or was cancelled, from its newest checkpoint; all of them or none."""
    row = pipelines.get_pipeline(session, access.project, pipeline)
    resumed = pipelines.resume(session, row, access.actor)
    audit(session, access, "pipeline.resume", f"pipeline {row.name} {row.id}", {"stages": resumed})
    session.expire_all()
    return pipelines.detail(session, row)


@router.get("/pipelines/{pipeline}/report", responses=problems(404))
def get_report(
    pipeline: str,
    session: Db,
    access: Reader,
    stage: Annotated[str | None, Query(description="Which evaluation; the last finished one by default.")] = None,
) -> PipelineReport:
    """What the evaluation found and what every stage took. Without figures yet, `methods` is empty."""
    return pipeline_report(session, pipelines.get_pipeline(session, access.project, pipeline), stage)
