"""The gate of an evaluation, or of a pipeline that ends with one, over HTTP."""

from __future__ import annotations

import hashlib
import uuid
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query, Request, Response
from sqlalchemy.orm import Session

from steerboard.accounts.access import Credentials
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.accounts.tables import Project
from steerboard.evaluation.gate import decision
from steerboard.evaluation.gate.junit import junit_xml
from steerboard.evaluation.gate.reward_differences import reward_differences
from steerboard.evaluation.gate.rules import GateRules
from steerboard.evaluation.recipe_stage.lookup import evaluation_of_pipeline
from steerboard.evaluation.report.api import ReportOf, look_up, read_report
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.concurrency import in_turn
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import problems
from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import note_news
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.gate import GateVerdict

# A verdict is of the moment, so a repeated request is evaluated again.
router = Router(prefix="/evaluations", tags=["evaluations"], route_class=UnkeptRoute)


pipeline_router = Router(prefix="/pipelines", tags=["pipelines"], route_class=UnkeptRoute)

Format = Annotated[Literal["json", "junit"], Query(description="junit: one test case per rule, as XML.")]
_XML: dict[int | str, dict[str, Any]] = {200: {"content": {"application/xml": {}}}}


@router.post("/{evaluation}/gate", responses={**problems(404), **_XML})
async def evaluation_gate(request: Request, target: ReportOf, body: GateRules, format: Format = "json") -> GateVerdict:
    """Hold rules against the report: pass, fail, or invalid where something cannot be decided. Notices tell of the
    first two."""
    return await _gate(request, target, body, format)


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
    target: Annotated[tuple[Project, uuid.UUID], Depends(_of_pipeline)],
    body: GateRules,
    format: Format = "json",
) -> GateVerdict:
    """Hold rules against a pipeline's evaluation; an entrant has the name of its stage, and its score: `policy_5`."""
    return await _gate(request, target, body, format)


async def _gate(
    request: Request, target: tuple[Project, uuid.UUID], body: GateRules, format: Literal["json", "junit"]
) -> GateVerdict:
    owner, id_ = target
    report = await read_report(request, id_)
    verdict = await in_turn(request, _decide, request.app, owner, report, body)
    if format == "junit":
        return Response(junit_xml(verdict), media_type="application/xml")  # type: ignore[return-value]
    return verdict


def _decide(app: FastAPI, project: Project, report: EvaluationReport, rules: GateRules) -> GateVerdict:
    with transaction(app.state.sessions) as session:
        pinned = decision.expected_hashes(session, project, rules.baselines)
        differences = reward_differences(session, project, report, rules)
        verdict = decision.decide(report, rules, pinned, differences)
        _tell(session, project, report, rules, verdict)
    return verdict


def _tell(session: Session, project: Project, report: EvaluationReport, rules: GateRules, verdict: GateVerdict) -> None:
    """Notices tell of a verdict once, however often the same rules are held against the same figures."""
    if verdict.verdict == "invalid":
        return
    state = "passed" if verdict.verdict == "pass" else "failed"
    digest = hashlib.sha256(f"{verdict.model_dump_json()} {rules.model_dump_json()}".encode()).hexdigest()
    about = {
        "id": str(report.evaluation_id),
        "name": report.evaluation,
        "state": state,
        "reason": "; ".join(verdict.why) or f"{len(verdict.rules)} rules hold",
        "rules": [
            rule.model_dump(mode="json", include={"text", "outcome", "value", "bound"}) for rule in verdict.rules
        ],
    }
    path = f"/evaluations/{report.evaluation_id}"
    note_news(session, News(project.id, f"gate.{state}", about, path=path, once=f"gate {digest}"))
