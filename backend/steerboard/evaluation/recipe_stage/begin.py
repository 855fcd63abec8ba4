"""The beginning of a recipe's evaluate stage: an evaluation with its prompts, entrants and reward models."""

from __future__ import annotations

import uuid

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.evaluation import contamination, divergence, rewards
from steerboard.evaluation.entrants import service as entrants
from steerboard.evaluation.entrants.schemas import EntrantIn
from steerboard.evaluation.events import changed
from steerboard.evaluation.prompts import service as prompts
from steerboard.evaluation.prompts.schemas import PromptsFrom
from steerboard.evaluation.recipe_runs import RecipeStage
from steerboard.evaluation.recipe_stage import judge
from steerboard.evaluation.recipe_stage.names import entrant_names
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.names import free_name, names_like
from steerboard.registry.tables import Model
from steerboard.runs.inputs import resolve
from steerboard.runs.tables import Pipeline, Run, RunInput
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig

Things = dict[str, Dataset | Model]

_LONGEST = 120


def begin(session: Session, run: Run) -> uuid.UUID:
    """Create the evaluation of an evaluate run whose inputs are there, with runs that are the run's children. Returns
    its id.

    Raises `UnusableInput`, `EmptySelection`, `BadInput` (`no_score_format`, `wrong_role`, ...).
    """
    project = session.get_one(Project, run.project_id)
    config = EvaluateConfig.model_validate(run.config)
    things = resolve(session, run)
    stage = RecipeStage(run, config, _dataset(things, "labelled"), _dataset(things, "preferences"))
    evaluation = _create(session, project, stage, _data(things), things.get(divergence.INPUT))
    names = _names(session, run, things)
    _enter(session, project, evaluation, stage, things, names)
    for slot in _places(things, "rewards"):
        ref = str(things[slot].id)
        rewards.assess(session, project, evaluation, ref, run.created_by, stage=stage, name=names[slot])
    _judge(session, project, evaluation, stage, things, names)
    if config.quality is not None:
        rewards.assess_known_quality(session, project, evaluation, config.quality, run.created_by, stage)
    contamination.plan(session, project, evaluation, None)
    changed(session, evaluation, "created")
    return evaluation.id


def _create(
    session: Session, project: Project, stage: RecipeStage, data: Dataset, kl_to: Dataset | Model | None
) -> Evaluation:
    config, run = stage.config, stage.run
    limit = min(config.prompts, prompts.MOST_PROMPTS)
    source = PromptsFrom(dataset=str(data.id), split="held_out", limit=limit, seed=config.seed)
    try:
        chosen = prompts.choose(session, project, source)
    except EmptySelection as error:
        hint = "Raise the project's held-out fraction or give more prompts."
        raise EmptySelection(f"dataset {data.name} has no held-out prompts to evaluate on", hint=hint) from error
    pipeline = session.get(Pipeline, run.pipeline_id) if run.pipeline_id else None
    wanted = (f"{pipeline.name}.{run.name}" if pipeline else run.name)[:_LONGEST]
    taken = names_like(session, Evaluation.name, wanted, Evaluation.project_id == project.id)
    evaluation = Evaluation(
        project_id=project.id,
        name=free_name(wanted, taken),
        description=f"The stage {run.name} of pipeline {pipeline.name}." if pipeline else "",
        prompts_from=chosen.origin,
        checked_against=[],
        seed=config.seed,
        pool=run.pool,
        kl_to=divergence.chosen(session, project, str(kl_to.id)) if kl_to is not None else None,
        run_id=run.id,
        version=0,
        created_by=run.created_by,
    )
    session.add(evaluation)
    session.flush()
    prompts.store(session, evaluation, chosen)
    return evaluation


def _enter(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    stage: RecipeStage,
    things: Things,
    names: dict[str, str],
) -> None:
    """Each model once for each of its scores."""
    config = stage.config
    slots = _places(things, "entrants")
    if len(slots) != len(config.entrants):
        raise BadInput(f"{len(config.entrants)} entrants are configured, but {len(slots)} given", code="missing_input")
    given = [(names[slot], entrant) for slot, entrant in zip(slots, config.entrants, strict=True)]
    for number, (slot, rows) in enumerate(zip(slots, entrant_names(given), strict=True)):
        entrant, chooser = config.entrants[number], things.get(f"best_of.{number}")
        if (entrant.best_of is None) != (chooser is None):
            raise BadInput(
                f"entrant {number} has only one of `best_of` and the reward model that chooses", code="missing_input"
            )
        decoding = config.decoding.model_copy(update={"n": 1, "guidance": entrant.guidance})
        if entrant.best_of is not None and decoding.temperature == 0:
            decoding = decoding.model_copy(update={"temperature": 1.0})
        for name, score in rows:
            request = EntrantIn(
                name=name,
                model=str(things[slot].id),
                score=score,
                decoding=decoding,
                samples=entrant.samples,
                best_of=entrant.best_of,
                reward=str(chooser.id) if chooser is not None else None,
                engine=config.engine,
            )
            entrants.add(session, project, evaluation, request, stage.run.created_by, stage)


def _judge(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    stage: RecipeStage,
    things: Things,
    names: dict[str, str],
) -> None:
    model = things.get(judge.INPUT)
    if model is not None and stage.config.judge is not None:
        raise BadInput("both an endpoint and a preference model are given as the judge", code="invalid_judge")
    preference_model = model if isinstance(model, Model) else None
    judge.ask(session, project, evaluation, stage, preference_model, names.get(judge.INPUT, ""))


def _names(session: Session, run: Run, things: Things) -> dict[str, str]:
    """The stage that made each input, or else its own name; with a number where two would be called alike."""
    given = select(RunInput.name, Run.name).where(RunInput.run_id == run.id)
    stages = dict(session.execute(given.join(Run, Run.id == RunInput.upstream_run_id)).all())
    names: dict[uuid.UUID, str] = {}
    for slot, thing in things.items():
        if thing.id not in names:
            names[thing.id] = free_name(stages.get(slot, thing.name)[:_LONGEST], names.values())
    return {slot: names[thing.id] for slot, thing in things.items()}


def _places(things: Things, slot: str) -> list[str]:
    """`entrants.0`, `entrants.1`, ..., in their order."""
    slots = [name for name in things if name.partition(".")[0] == slot]
    return sorted(slots, key=lambda name: int(name.partition(".")[2]))


def _data(things: Things) -> Dataset:
    data = _dataset(things, "data")
    if data is None:
        raise BadInput("an evaluation needs a dataset with prompts", code="missing_input")
    return data


def _dataset(things: Things, name: str) -> Dataset | None:
    thing = things.get(name)
    return thing if isinstance(thing, Dataset) else None
