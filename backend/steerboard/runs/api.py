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
from steerboard.runs.bulk.api import router as bulk_router
from steerboard.runs.listing.api import router as listing_router
from steerboard.runs.pipelines.api import router as pipelines_router
from steerboard.runs.results.inspected_pairs import InspectedPairs, PairMargin, PairRead, RunPairs
from steerboard.runs.results.metric_curves import metrics
from steerboard.runs.results.probe_answers import RunProbes, probes_of
from steerboard.runs.results.sampled_groups import RunGroups, group_of, groups_of
from steerboard.runs.results.selections import academic_result_of, combination_of, selection_of
from steerboard.runs.schemas.kinds import RunKindCard, RunKindOut
from steerboard.runs.schemas.requests import RowCheckIn, RunChanges, RunClone, RunCreate, RunPlace, RunResume
from steerboard.runs.schemas.runs import LogLine, MetricSeries, RowCheck, RunDetail
from steerboard.runs.standalone import row_checks, starting
from steerboard.runs.state import lifecycle, oversight
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
router.include_router(listing_router)
router.include_router(bulk_router)

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.post("/runs", status_code=201, responses=problems(404, 409, 422))
def start_run(body: RunCreate, request: Request, session: Db, access: Runner) -> RunDetail:
    """Start a run outside any pipeline."""
    run = starting.start_run(session, access.project, body, access.actor, *_readable(request, access))
    audit(session, access, "run.start", f"run {run.name} {run.id}", {"config": run.config, "inputs": body.inputs})
    return queries.detail(session, run, access.owner)


@router.post("/runs/row-check", responses=problems(404, 422))
def check_rows(body: RowCheckIn, session: Db, access: Runner) -> RowCheck | None:
    """Have the rows of a training run tokenised before it is started: how many are too long, and which the chat
    template refuses. Ask again until `state` is an end. Null for a run that trains nothing. Equal checks are one."""
    return row_checks.row_check(session, access.project, body, body.pool, access.actor)


@router.get("/runs/{run}", responses=problems(404))
def get_run(run: str, session: Db, access: Reader) -> RunDetail:
    """Config, inputs, outputs, timeline, attempts and cost of a run."""
    return queries.detail(session, queries.get_run(session, access.project, run), access.owner)


@router.patch("/runs/{run}", responses=problems(404, 409, 422))
def move_run(run: str, body: RunPlace, session: Db, access: Runner) -> RunDetail:
    """Change the priority of a pending or queued run, or its place among those of its priority."""
    row = queries.get_run(session, access.project, run)
    queue.move_in_queue(session, row, body)
    audit(session, access, "run.move", f"run {row.name} {row.id}", body.model_dump(exclude_none=True))
    return _fresh(session, row, access)


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
    row = queries.log_lines(queries.get_run(session, access.project, run), level)
    return paginate(
        session, row, RunLog.id, LogLine.model_validate, cursor=cursor, limit=limit, newest_first=newest_first
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
    row = queries.get_run(session, access.project, run)
    return InspectedPairs(session, request.app.state.store, row).margins(step)


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
    stored = queries.get_run(session, access.project, run)
    return InspectedPairs(session, request.app.state.store, stored).read(step, row)


@router.get("/runs/{run}/probes", responses=problems(404))
def get_probe_answers(run: str, session: Db, access: Reader) -> RunProbes:
    """Answers to a training run's probe prompts at every evaluation so far, and by the model that it started from."""
    return probes_of(session, queries.get_run(session, access.project, run))


@router.get("/runs/{run}/groups", responses=problems(404))
def list_sampled_groups(run: str, session: Db, access: Reader) -> RunGroups:
    """The steps at which an online run kept the answers that it sampled to some prompts, and how many of these."""
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
    row = queries.get_run(session, access.project, run)
    lifecycle.request_cancel(session, row, access.actor)
    audit(session, access, "run.cancel", f"run {row.name} {row.id}")
    return _fresh(session, row, access)


@router.post("/runs/{run}/pause", responses=problems(404, 409))
def pause_run(run: str, session: Db, access: Runner) -> RunDetail:
    """Pause a training run: it saves a checkpoint after its current step and frees its device, until it is resumed."""
    row = queries.get_run(session, access.project, run)
    oversight.pause(session, row, access.actor)
    audit(session, access, "run.pause", f"run {row.name} {row.id}")
    return _fresh(session, row, access)


@router.post("/runs/{run}/change", responses=problems(404, 409, 422))
def change_run(run: str, body: RunChanges, session: Db, access: Runner) -> RunDetail:
    """Change settings of a training run from its next optimiser step on: those that its `changeable` lists."""
    row = queries.get_run(session, access.project, run)
    oversight.change(session, row, body.config, access.actor)
    audit(session, access, "run.change", f"run {row.name} {row.id}", {"config": body.config})
    return _fresh(session, row, access)


@router.post("/runs/{run}/resume", responses=problems(404, 409, 422))
def resume_run(run: str, session: Db, access: Runner, body: RunResume | None = None) -> RunDetail:
    """Resume a failed, cancelled or paused run from its newest checkpoint, with new attempts."""
    row = queries.get_run(session, access.project, run)
    changes = body.config if body else {}
    lifecycle.resume(session, row, access.actor, changes)
    audit(session, access, "run.resume", f"run {row.name} {row.id}", {"config": changes} if changes else None)
    return _fresh(session, row, access)


@router.post("/runs/{run}/clone", status_code=201, responses=problems(404, 409, 422))
def clone_run(run: str, body: RunClone, request: Request, session: Db, access: Runner) -> RunDetail:
    """Start the same run again, with changes."""
    original = queries.get_run(session, access.project, run)
    cloned = starting.clone_run(session, access.project, original, body, access.actor, *_readable(request, access))
    detail = {"from": str(original.id), "config": body.config, "inputs": body.inputs}
    audit(session, access, "run.clone", f"run {cloned.name} {cloned.id}", detail)
    return queries.detail(session, cloned, access.owner)


def _readable(request: Request, access: Access) -> tuple[LocalFolders | None, ArtifactStore]:
    """What may be read to check a run of this caller."""
    return folders_for(request, access), request.app.state.store


def _fresh(session: Db, run: Run, access: Access) -> RunDetail:
    session.flush()
    session.refresh(run)
    return queries.detail(session, run, access.owner)


@router.get("/schemas")
def list_schemas(access: Reader) -> list[RunKindCard]:
    """Every run kind that can be started, training once for each method: what lists, menus and links show of them."""
    return [RunKindCard.of(spec) for spec in run_kinds()]


@router.get("/schemas/{kind}", responses=problems(404, 422))
def get_schema(kind: RunKind, access: Reader) -> list[RunKindOut]:
    """JSON Schema of a run kind's config and its inputs, for launch forms: one for each method of `train`."""
    return [RunKindOut.of(spec) for spec in run_kinds() if spec.run == kind]
