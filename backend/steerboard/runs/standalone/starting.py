"""Runs of their own, outside any pipeline: checked by the same rules as the stages of a recipe."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.names import next_name_of_all
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.inputs import resolve
from steerboard.runs.schemas.requests import RunClone, RunCreate
from steerboard.runs.standalone.checks import checked
from steerboard.runs.standalone.foreseen import warn_of
from steerboard.runs.standalone.outside_models import brought_in
from steerboard.runs.standalone.row_checks import refuse_failing
from steerboard.runs.state.lifecycle import create_run
from steerboard.runs.tables import Run
from steerboard_contracts.files.local_folders import LocalFolders


def start_run(
    session: Session,
    project: Project,
    request: RunCreate,
    actor: str,
    folders: LocalFolders | None = None,
    store: ArtifactStore | None = None,
) -> Run:
    """Check and create a run, behind those that import models from outside. Raises `InvalidRun` with every fault by
    field."""
    config, refs = checked(session, project, request, folders, store)
    check = refuse_failing(session, config, refs)
    refs |= brought_in(request, lambda first: start_run(session, project, first, actor, folders, store))
    run = create_run(
        session,
        project,
        name=request.name or _run_name(session, project, config.run),
        config=config,
        inputs=refs,
        pool=request.pool,
        priority=request.priority,
        reuse=request.reuse,
        created_by=actor,
    )
    if store is not None:
        warn_of(session, store, run, refs, check)
        session.flush()
    return run


def clone_run(
    session: Session,
    project: Project,
    run: Run,
    changes: RunClone,
    actor: str,
    folders: LocalFolders | None = None,
    store: ArtifactStore | None = None,
) -> Run:
    """A new run like `run`, with the changes. Its inputs are what the original's came to be.

    Raises `InvalidRun`; also while an input of the original has not been made yet.
    """
    things = resolve(session, run)
    names = {name: str(thing.id) for name, thing in things.items()}
    request = RunCreate(
        name=changes.name,
        config={**run.config, **changes.config},
        inputs={**names, **changes.inputs},
        pool=changes.pool or run.pool,
        priority=run.priority,
        reuse=changes.reuse,
    )
    return start_run(session, project, request, actor, folders, store)


def _run_name(session: Session, project: Project, kind: str) -> str:
    """`generate-3`: one more than the runs of this kind outside pipelines."""
    alone = (Run.project_id == project.id, Run.pipeline_id.is_(None))
    return next_name_of_all(session, project.id, Run.name, kind, *alone)
