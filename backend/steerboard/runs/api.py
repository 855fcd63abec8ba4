"""Runs over HTTP: look, start, pause, change, cancel, resume, clone."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.model_folders import folders_for
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs import queries, queue
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.pipelines.api import router as pipelines_router
from steerboard.runs.results.inspected_pairs import InspectedPairs, PairMargin, PairRead, RunPairs
from steerboard.runs.results.metric_curves import metrics
from steerboard.runs.results.probe_answers import RunProbes, probes_of
from steerboard.runs.results.sampled_groups import RunGroups, group_of, groups_of
from steerboard.runs.results.selections import academic_result_of, combination_of, selection_of
from steerboard.runs.schemas.kinds import RunKindCard, RunKindOut
from steerboard.runs.schemas.requests import RowCheckIn, RunChanges, RunClone, RunCreate, RunPlace, RunResume
from steerboard.runs.schemas.runs import LogLine, MetricSeries, RowCheck, RunDetail, RunSummary
from steerboard.runs.standalone import row_checks, starting
from steerboard.runs.state import lifecycle, oversight
from steerboard.runs.state.transitions import RunState
from steerboard.runs.tables import Run, RunLog
from steerboard_contracts.fields import RunKind
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.answer_groups import AnswerGroup
from steerboard_contracts.report.academic import AcademicResult
from steerboard_contracts.report.combination import CombinationResult
from steerboard_contracts.report.selection import SelectionResult
from steerboard_contracts.run_kinds import run_kinds

router = Router(tags=["runs"])
router.include_router(pipelines_router)

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.get("/runs", responses=problems(404, 422))
def list_runs(
    session: Db,
    access: Reader,
    state: Annotated[list[RunState], Query()] = [],  # noqa: B006
    kind: Annotated[list[RunKind], Query()] = [],  # noqa: B006
    pipeline: Annotated[str | None, Query(description="Id or name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Page[RunSummary]:
    """The newest first. Shards are shown with their run."""
    pipeline_id = pipelines.get_pipeline(session, access.project, pipeline).id if pipeline else None
    found = queries.runs_of(access.project, state, kind, pipeline_id)
    return paginate(
        session,
        found,
        Run.id,
        lambda run: queries.summaries(session, [run])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda runs: queries.summaries(session, runs),
    )


@router.post("/runs", status_code=201, responses=problems(404, 409, 422))
def start_run(body: RunCreate, request: Request, session: Db, access: Runner) -> RunDetail:
    """Start a run outside any pipeline."""
    run = starting.start_run(session, access.project, body, access.actor, *_readable(request, access))
    audit(session, access, "run.start", f"run {run.name} {run.id}", {"config": run.config, "inputs": body.inputs})
    return queries.detail(session, run)


@router.post("/runs/row-check", responses=problems(404, 422))
def check_rows(body: RowCheckIn, session: Db, access: Runner) -> RowCheck | None:
    """Have the rows of a training run tokenised before it is started: how many are too long, and which the chat
    template refuses. Ask again until `state` is an end. Null for a run that trains nothing. Equal checks are one."""
    return row_checks.row_check(session, access.project, body, body.pool, access.actor)


@router.get("/runs/{run}", responses=problems(404))
def get_run(run: str, session: Db, access: Reader) -> RunDetail:
    """Config, inputs, outputs, timeline, attempts and cost of a run."""
    return queries.detail(session, queries.get_run(session, access.project, run))


@router.patch("/runs/{run}", responses=problems(404, 409, 422))
def move_run(run: str, body: RunPlace, session: Db, access: Runner) -> RunDetail:
    """Change the priority of a pending or queued run, or its place among those of its priority."""
    found = queries.get_run(session, access.project, run)
    queue.move_in_queue(session, found, body)
    audit(session, access, "run.move", f"run {found.name} {found.id}", body.model_dump(exclude_none=True))
    return _fresh(session, found)


@router.get("/runs/{run}/metrics", responses=problems(404, 422))
def get_metrics(
    run: str,
    session: Db,
    access: Reader,
    name: Annotated[list[str], Query(description="Only these metrics.")] = [],  # noqa: B006
    points: Annotated[int, Query(ge=1, le=10_000, description="At most this many points per metric.")] = 500,
) -> list[MetricSeries]:
    """Metrics by name, down-sampled in the database."""
    return metrics(session, queries.get_run(session, access.project, run), name, points)


@router.get("/runs/{run}/logs", responses=problems(404, 422))
def get_logs(
    run: str,
    session: Db,
    access: Reader,
    level: Annotated[list[str], Query()] = [],  # noqa: B006
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
    newest_first: Annotated[bool, Query(description="Begin with the end of the log.")] = False,
) -> Page[LogLine]:
    """Lines of the stage's log, the oldest first unless asked for the newest."""
    found = queries.log_lines(queries.get_run(session, access.project, run), level)
    return paginate(
        session, found, RunLog.id, LogLine.model_validate, cursor=cursor, limit=limit, newest_first=newest_first
    )


@router.get("/runs/{run}/selection", responses=problems(404))
def get_selection(run: str, session: Db, access: Reader) -> SelectionResult:
    """What a select run kept and dropped, and the best-of-k curve of the answers that it selected from."""
    return selection_of(session, queries.get_run(session, access.project, run))


@router.get("/runs/{run}/academic", responses=problems(404))
def get_academic_result(run: str, session: Db, access: Reader) -> AcademicResult:
    """The figures of an academic run, with the score of every item, in the order of the task's data."""
    return academic_result_of(session, queries.get_run(session, access.project, run))


@router.get("/runs/{run}/pairs", responses=problems(404))
def get_inspected_pairs(run: str, session: Db, access: Reader, request: Request) -> RunPairs:
    """Which pairs, or answers with a thumb, a run keeps rewards of, and at which evaluated steps: the newest one until
    it has succeeded."""
    return InspectedPairs(session, request.app.state.store, queries.get_run(session, access.project, run)).about()


@router.get("/runs/{run}/pairs/{step}", responses=problems(404))
def list_pair_margins(run: str, step: int, session: Db, access: Reader, request: Request) -> list[PairMargin]:
    """The margin of each inspected pair after a step, smallest first: below 0 the model prefers the rejected answer, or
    goes against the thumb."""
    found = queries.get_run(session, access.project, run)
    return InspectedPairs(session, request.app.state.store, found).margins(step)


@router.get("/runs/{run}/pairs/{step}/rows", responses=problems(404))
def read_pairs(
    run: str,
    step: int,
    session: Db,
    access: Reader,
    request: Request,
    row: Annotated[list[int], Query(min_length=1, max_length=20, description="Rows of the dataset.")],
) -> list[PairRead]:
    """Pairs with both answers, or single ones, and the log-ratio of each token, in the order of their margins."""
    found = queries.get_run(session, access.project, run)
    return InspectedPairs(session, request.app.state.store, found).read(step, row)


@router.get("/runs/{run}/probes", responses=problems(404))
def get_probe_answers(run: str, session: Db, access: Reader) -> RunProbes:
    """Answers to a training run's probe prompts at every evaluation so far, and by the model that it started from."""
    return probes_of(session, queries.get_run(session, access.project, run))


@router.get("/runs/{run}/groups", responses=problems(404))
def list_sampled_groups(run: str, session: Db, access: Reader) -> RunGroups:
    """At which steps an online run kept the answers that it sampled to some prompts, and how many of these."""
    return groups_of(session, queries.get_run(session, access.project, run))


@router.get("/runs/{run}/groups/{step}/{place}", responses=problems(404, 422))
def get_sampled_group(
    run: str,
    step: Annotated[int, Path(ge=0, lt=2**31)],
    place: Annotated[int, Path(ge=0, le=255)],
    session: Db,
    access: Reader,
) -> AnswerGroup:
    """The answers to one prompt, by reward, each with its advantage, KL and tokens. `place` counts from 0."""
    return group_of(session, queries.get_run(session, access.project, run), step, place)


@router.get("/runs/{run}/combination", responses=problems(404))
def get_combination(run: str, session: Db, access: Reader) -> CombinationResult:
    """How a combine run normalised and weighted each reward, and how the rewards go together."""
    return combination_of(session, queries.get_run(session, access.project, run))


@router.post("/runs/{run}/cancel", responses=problems(404, 409))
def cancel_run(run: str, session: Db, access: Runner) -> RunDetail:
    """Pending and queued runs end immediately; a running one at its worker's next heartbeat."""
    found = queries.get_run(session, access.project, run)
    lifecycle.request_cancel(session, found, access.actor)
    audit(session, access, "run.cancel", f"run {found.name} {found.id}")
    return _fresh(session, found)


@router.post("/runs/{run}/pause", responses=problems(404, 409))
def pause_run(run: str, session: Db, access: Runner) -> RunDetail:
    """A training run keeps a checkpoint after its current step and frees its device, until it is resumed."""
    found = queries.get_run(session, access.project, run)
    oversight.pause(session, found, access.actor)
    audit(session, access, "run.pause", f"run {found.name} {found.id}")
    return _fresh(session, found)


@router.post("/runs/{run}/change", responses=problems(404, 409, 422))
def change_run(run: str, body: RunChanges, session: Db, access: Runner) -> RunDetail:
    """Other settings from the next optimiser step on, of a training run that has not ended: those it calls
    `changeable`."""
    found = queries.get_run(session, access.project, run)
    oversight.change(session, found, body.config, access.actor)
    audit(session, access, "run.change", f"run {found.name} {found.id}", {"config": body.config})
    return _fresh(session, found)


@router.post("/runs/{run}/resume", responses=problems(404, 409, 422))
def resume_run(run: str, session: Db, access: Runner, body: RunResume | None = None) -> RunDetail:
    """Give a failed, cancelled or paused run new attempts, from its newest checkpoint."""
    found = queries.get_run(session, access.project, run)
    changes = body.config if body else {}
    lifecycle.resume(session, found, access.actor, changes)
    audit(session, access, "run.resume", f"run {found.name} {found.id}", {"config": changes} if changes else None)
    return _fresh(session, found)


@router.post("/runs/{run}/clone", status_code=201, responses=problems(404, 409, 422))
def clone_run(run: str, body: RunClone, request: Request, session: Db, access: Runner) -> RunDetail:
    """The same run again, with changes."""
    original = queries.get_run(session, access.project, run)
    cloned = starting.clone_run(session, access.project, original, body, access.actor, *_readable(request, access))
    detail = {"from": str(original.id), "config": body.config, "inputs": body.inputs}
    audit(session, access, "run.clone", f"run {cloned.name} {cloned.id}", detail)
    return queries.detail(session, cloned)


def _readable(request: Request, access: Access) -> tuple[LocalFolders | None, ArtifactStore]:
    """What may be read to check a run of this caller."""
    return folders_for(request, access), request.app.state.store


def _fresh(session: Db, run: Run) -> RunDetail:
    session.flush()
    session.refresh(run)
    return queries.detail(session, run)


@router.get("/schemas")
def list_schemas(access: Reader) -> list[RunKindCard]:
    """Every run kind that can be started, training once for each method: what lists, menus and links show of them."""
    return [RunKindCard.of(one) for one in run_kinds()]


@router.get("/schemas/{kind}", responses=problems(404, 422))
def get_schema(kind: RunKind, access: Reader) -> list[RunKindOut]:
    """JSON Schema of a run kind's config and its inputs, for launch forms: one for each method of `train`."""
    return [RunKindOut.of(one) for one in run_kinds() if one.run == kind]
