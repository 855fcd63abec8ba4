"""The gate of an evaluation, or of a pipeline that ends with one, over HTTP."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query, Request, Response
from sqlalchemy.orm import Session

from steerboard.accounts.access import Credentials
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.accounts.tables import Project
from steerboard.evaluation.gate import decision
from steerboard.evaluation.gate.junit import junit_xml
from steerboard.evaluation.gate.rules import GateRules
from steerboard.evaluation.recipe_stage.lookup import evaluation_of_pipeline
from steerboard.evaluation.report.api import Asked, look_up, read_report
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.concurrency import in_turn
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import problems
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.gate import GateVerdict

# A verdict is of the moment, so a repeated request is evaluated again.
router = Router(prefix="/evaluations", tags=["evaluations"], route_class=UnkeptRoute)


pipeline_router = Router(prefix="/pipelines", tags=["pipelines"], route_class=UnkeptRoute)

Format = Annotated[Literal["json", "junit"], Query(description="junit: one test case per rule, as XML.")]
_XML: dict[int | str, dict[str, Any]] = {200: {"content": {"application/xml": {}}}}


@router.post("/{evaluation}/gate", responses={**problems(404), **_XML})
async def evaluation_gate(request: Request, asked: Asked, body: GateRules, format: Format = "json") -> GateVerdict:
    """Hold rules against the report: pass, fail, or invalid where something cannot be decided. Changes nothing."""
    return await _gate(request, asked, body, format)


async def _of_pipeline(
    request: Request,
    project: str,
    pipeline: str,
    credentials: Credentials,
    stage: Annotated[str | None, Query(description="Which evaluation; the last one by default.")] = None,
) -> tuple[Project, uuid.UUID]:
    def find(session: Session, owner: Project) -> Evaluation:
        return evaluation_of_pipeline(session, owner, pipeline, stage)

    return await in_turn(request, look_up, request, credentials, project, find)


@pipeline_router.post("/{pipeline}/gate", responses={**problems(404, 409), **_XML})
async def pipeline_gate(
    request: Request,
    asked: Annotated[tuple[Project, uuid.UUID], Depends(_of_pipeline)],
    body: GateRules,
    format: Format = "json",
) -> GateVerdict:
    """Hold rules against a pipeline's evaluation; an entrant has the name of its stage, and its score: `policy_5`."""
    return await _gate(request, asked, body, format)


async def _gate(
    request: Request, asked: tuple[Project, uuid.UUID], body: GateRules, format: Literal["json", "junit"]
) -> GateVerdict:
    owner, id_ = asked
    found = await read_report(request, id_)
    verdict = await in_turn(request, _decide, request.app, owner, found, body)
    if format == "junit":
        return Response(junit_xml(verdict), media_type="application/xml")  # type: ignore[return-value]
    return verdict


def _decide(app: FastAPI, project: Project, found: EvaluationReport, rules: GateRules) -> GateVerdict:
    with transaction(app.state.sessions) as session:
        pinned = decision.expected_hashes(session, project, rules.baselines)
    return decision.decide(found, rules, pinned)
