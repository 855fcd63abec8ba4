"""Planning against a project, and starting: one transaction creates the pipeline and all its runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.names import names_like, next_name
from steerboard.platform.package_files import folder as shipped_folder
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.recipes.errors import UnknownRecipe
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.limits import MAX_BYTES
from steerboard.recipes.planning.plan import Plan
from steerboard.recipes.row_checks import refuse_failing
from steerboard.recipes.sources import Source
from steerboard.recipes.starting_stage import check_made, read_by, stages_from
from steerboard.runs.launch.lookup import KnownDataset
from steerboard.runs.standalone.foreseen import foreseen_warnings, warn_of
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.tables import Pipeline, Run
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.watching.warnings import RunWarning

SHIPPED = shipped_folder("recipes")
T = TypeVar("T")


def start(
    session: Session,
    project: Project,
    planned: Plan,
    actor: str,
    *,
    reuse: bool = True,
    first: str | None = None,
    store: ArtifactStore | None = None,
) -> Pipeline:
    """Create the pipeline, named RECIPE-N, and its runs. The caller commits; all of it or nothing is there then.

    `first`: the stage that it starts from. It and all after it run; what others made must be there. Raises
    `InvalidRecipe`."""
    running = None if first is None else stages_from(planned, first)
    stages = planned.stages if running is None else read_by(planned.stages, running)
    checks = refuse_failing(session, planned, running)
    pipeline = Pipeline(
        project_id=project.id,
        name=_next_name(session, project, planned.name),
        recipe=planned.recipe,
        recipe_text=planned.text,
        settings={"overrides": planned.overrides, "notes": planned.notes, **_planned(planned)},
        created_by=actor,
    )
    session.add(pipeline)
    session.flush()
    runs: dict[str, Run] = {}
    for stage in stages:
        inputs = {name: _input_ref(source, runs) for name, source in stage.inputs.items()}
        run = runs[stage.name] = create_run(
            session,
            project,
            name=stage.name,
            config=stage.config,
            inputs=inputs,
            pipeline_id=pipeline.id,
            pool=stage.pool,
            reuse=reuse and stage.reuse if running is None else stage.name not in running,
            created_by=actor,
        )
        if store is not None:
            warn_of(session, store, run, inputs, checks.get(stage.name))
    if first is not None and running is not None:
        check_made(first, [name for name, run in runs.items() if name not in running and run.state != "succeeded"])
    return pipeline


def taken_from_finished(sessions: sessionmaker[Session], project: Project, planned: Plan, first: str) -> list[str]:
    """The stages of which a start from `first` takes what finished runs made. Raises `InvalidRecipe` as it would.

    It is started in a transaction of its own and rolled back, so it is refused exactly where a start is."""
    with sessions() as session:  # never committed
        start(session, project, planned, "a check", first=first)
    running = stages_from(planned, first)
    return [stage.name for stage in read_by(planned.stages, running) if stage.name not in running]


def foreseen(
    session: Session, store: ArtifactStore, config: RunConfig | None, inputs: Mapping[str, Source]
) -> list[RunWarning]:
    """What is known of a stage's warnings before a start, by those of its inputs that no stage makes. Checks of rows
    are apart (`row_checks`)."""
    known = {name: _input_ref(source, {}) for name, source in inputs.items() if not isinstance(source, StageRef)}
    return foreseen_warnings(session, store, config, known)


def _planned(planned: Plan) -> dict[str, Any]:
    """What pages about the whole pipeline need to know of its plan."""
    documents = {"sweep": planned.sweep, "rounds": planned.rounds}
    return {name: of.model_dump(mode="json") for name, of in documents.items() if of is not None}


def _input_ref(source: Source, runs: dict[str, Run]) -> InputRef:
    if isinstance(source, StageRef):
        return InputRef(run=runs[source.stage].id, output=source.output)
    return InputRef(dataset=source.id) if isinstance(source, KnownDataset) else InputRef(model=source.id)


def _next_name(session: Session, project: Project, recipe: str) -> str:
    """RECIPE-N with the next N; concurrent starts wait for each other here."""
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{project.id}:{recipe}", 0))))
    return next_name(recipe, names_like(session, Pipeline.name, f"{recipe}-", Pipeline.project_id == project.id))


def shipped() -> dict[str, str]:
    """The recipes that ship, text by name."""
    return {path.stem: path.read_text() for path in sorted(SHIPPED.glob("*.yaml")) if path.stat().st_size <= MAX_BYTES}


def shipped_text(name: str) -> str:
    """Raises `UnknownRecipe`."""
    recipes = shipped()
    if name not in recipes:
        raise UnknownRecipe(f"there is no recipe `{name}`{did_you_mean(name, recipes)}")
    return recipes[name]
