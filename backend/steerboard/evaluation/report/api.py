"""The report and the gate of an evaluation over HTTP."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials
from starlette.concurrency import run_in_threadpool

from steerboard.accounts.tables import Project
from steerboard.evaluation import service
from steerboard.evaluation.gate import decision
from steerboard.evaluation.gate.junit import junit_xml
from steerboard.evaluation.gate.rules import GateRules
from steerboard.evaluation.report import assembly
from steerboard.evaluation.report.methods import against
from steerboard.platform.access import Credentials, identify, require, visible_project
from steerboard.platform.database import transaction
from steerboard.platform.errors import problems
from steerboard.platform.idempotency import UnkeptRoute
from steerboard.platform.turns import in_turn
from steerboard_contracts.evaluation_report import EvaluationReport, GateVerdict

# A verdict is of the moment, so a repeated request is answered anew.
router = APIRouter(prefix="/evaluations", tags=["evaluations"], route_class=UnkeptRoute)


async def _asked(
    request: Request, project: str, evaluation: str, credentials: Credentials
) -> tuple[Project, uuid.UUID]:
    """A dependency, so that who may not read hears that, and not what is wrong with a body."""
    return await in_turn(request.app, _look_up, request, credentials, project, evaluation)


Asked = Annotated[tuple[Project, uuid.UUID], Depends(_asked)]


@router.get("/{evaluation}/report", responses=problems(404))
async def evaluation_report(
    request: Request,
    asked: Asked,
    baseline: Annotated[str | None, Query(description="The entrant that the others are held against.")] = None,
) -> EvaluationReport:
    """Every figure with its n and interval. Computed once for each version of the evaluation; it may take seconds."""
    found = await _report(request.app, asked[1])
    return found if baseline is None else against(found, baseline)


@router.post("/{evaluation}/gate", responses={**problems(404), 200: {"content": {"application/xml": {}}}})
async def evaluation_gate(
    request: Request,
    asked: Asked,
    body: GateRules,
    format: Annotated[Literal["json", "junit"], Query(description="junit: one test case a rule, as XML.")] = "json",
) -> GateVerdict:
    """Hold rules against the report: pass, fail, or invalid where something cannot be decided. Changes nothing."""
    owner, id_ = asked
    found = await _report(request.app, id_)
    verdict = await in_turn(request.app, _decide, request.app, owner, found, body)
    if format == "junit":
        return Response(junit_xml(verdict), media_type="application/xml")  # type: ignore[return-value]
    return verdict


def _look_up(
    request: Request, credentials: HTTPAuthorizationCredentials | None, project: str, evaluation: str
) -> tuple[Project, uuid.UUID]:
    """Which evaluation is meant, for somebody who may read it; in a transaction of its own, so that none is open while
    the report is computed."""
    with transaction(request.app.state.sessions) as session:
        found, scopes = visible_project(session, identify(request, session, credentials), project)
        require(scopes, "read")
        return found, service.get_evaluation(session, found, evaluation).id


async def _report(app: FastAPI, evaluation_id: uuid.UUID) -> EvaluationReport:
    """One is computed at a time, without a turn at the database: it takes a core for seconds."""
    sessions = app.state.sessions
    kept = await in_turn(app, assembly.kept, sessions, evaluation_id)
    if kept is None:
        async with app.state.reports:
            kept = await in_turn(app, assembly.kept, sessions, evaluation_id)
            if kept is None:
                kept = await run_in_threadpool(assembly.compute, sessions, evaluation_id)
    return kept


def _decide(app: FastAPI, project: Project, found: EvaluationReport, rules: GateRules) -> GateVerdict:
    with transaction(app.state.sessions) as session:
        pinned = decision.expected_hashes(session, project, rules.baselines)
    return decision.decide(found, rules, pinned)
