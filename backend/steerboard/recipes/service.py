"""Planning against a project, and starting: one transaction creates the pipeline and all its runs."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.service import get_dataset
from steerboard.datasets.tables import Dataset
from steerboard.platform.errors import NotFound
from steerboard.platform.shipped import folder as shipped_folder
from steerboard.recipes.catalogue import KnownDataset, KnownModel
from steerboard.recipes.document import MAX_BYTES
from steerboard.recipes.errors import UnknownRecipe, did_you_mean
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.plan import Plan, make_plan
from steerboard.recipes.sources import Source
from steerboard.registry.service import get_model
from steerboard.registry.tables import Model
from steerboard.runs.lifecycle import InputRef, create_run
from steerboard.runs.tables import Pipeline, Run

SHIPPED = shipped_folder("recipes")
SUGGESTIONS = 1000


class ProjectCatalogue:
    """The `Catalogue` of a project in the database."""

    def __init__(self, session: Session, project: Project) -> None:
        self._session = session
        self._project = project

    def dataset(self, ref: str) -> KnownDataset | None:
        try:
            found = get_dataset(self._session, self._project, ref)
        except NotFound:
            return None
        return KnownDataset(found.id, found.name, found.kind, found.rows)

    def model(self, ref: str) -> KnownModel | None:
        try:
            found = get_model(self._session, self._project, ref)
        except NotFound:
            return None
        return KnownModel(found.id, found.name, found.role)

    def dataset_names(self) -> list[str]:
        mine = select(Dataset.name).where(Dataset.project_id == self._project.id)
        return list(self._session.scalars(mine.order_by(Dataset.id.desc()).limit(SUGGESTIONS)))

    def model_names(self) -> list[str]:
        mine = select(Model.name).where(Model.project_id == self._project.id)
        return list(self._session.scalars(mine.order_by(Model.id.desc()).limit(SUGGESTIONS)))


def plan(session: Session, project: Project, text: str, overrides: list[str]) -> Plan:
    """What a start would do. Raises `InvalidRecipe` with every fault by line."""
    return make_plan(text, overrides, ProjectCatalogue(session, project))


def start(session: Session, project: Project, planned: Plan, actor: str, *, reuse: bool = True) -> Pipeline:
    """Create the pipeline, named RECIPE-N, and its runs. The caller commits; all of it or nothing is there then."""
    pipeline = Pipeline(
        project_id=project.id,
        name=_next_name(session, project, planned.name),
        recipe=planned.recipe,
        recipe_text=planned.text,
        settings={"overrides": planned.overrides, "notes": planned.notes},
        created_by=actor,
    )
    session.add(pipeline)
    session.flush()
    runs: dict[str, Run] = {}
    for stage in planned.stages:
        runs[stage.name] = create_run(
            session,
            project,
            name=stage.name,
            config=stage.config,
            inputs={name: _input_ref(source, runs) for name, source in stage.inputs.items()},
            pipeline_id=pipeline.id,
            pool=stage.pool,
            reuse=reuse and stage.reuse,
            created_by=actor,
        )
    return pipeline


def _input_ref(source: Source, runs: dict[str, Run]) -> InputRef:
    if isinstance(source, StageRef):
        return InputRef(run=runs[source.stage].id)
    return InputRef(dataset=source.id) if isinstance(source, KnownDataset) else InputRef(model=source.id)


def _next_name(session: Session, project: Project, recipe: str) -> str:
    """RECIPE-N with the next N; two starts at once wait for each other here."""
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{project.id}:{recipe}", 0))))
    names = session.scalars(
        select(Pipeline.name).where(
            Pipeline.project_id == project.id, Pipeline.name.regexp_match(rf"^{recipe}-[0-9]{{1,9}}$")
        )
    )
    return f"{recipe}-{max((int(name.rpartition('-')[2]) for name in names), default=0) + 1}"


def shipped() -> dict[str, str]:
    """The recipes that ship, text by name."""
    return {path.stem: path.read_text() for path in sorted(SHIPPED.glob("*.yaml")) if path.stat().st_size <= MAX_BYTES}


def shipped_text(name: str) -> str:
    """Raises `UnknownRecipe`."""
    recipes = shipped()
    if name not in recipes:
        raise UnknownRecipe(f"there is no recipe `{name}`{did_you_mean(name, recipes)}")
    return recipes[name]
