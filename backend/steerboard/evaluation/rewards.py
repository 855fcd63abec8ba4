"""Reward models over the responses of an evaluation: who assesses, which run does it, what it found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.rows.row_writer import copy_in
from steerboard.datasets.tables import Dataset, RewardSource
from steerboard.evaluation.entrants.lineage import training_data
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.events import changed
from steerboard.evaluation.lookup import part_of_run
from steerboard.evaluation.recipe_runs import RecipeStage, child_of
from steerboard.evaluation.tables import Entrant, Evaluation, Response, RewardAssessment, RewardValue
from steerboard.registry.service import get_model
from steerboard.registry.tables import Model
from steerboard.runs.inputs import AFTER
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Run, RunInput
from steerboard_contracts.engine import EngineName
from steerboard_contracts.errors import BadInput
from steerboard_contracts.known_quality import KNOWN_QUALITY, MARKS, KnownQuality, marked
from steerboard_contracts.models import what_to_name
from steerboard_contracts.run_kinds.reward import RewardConfig
from steerboard_contracts.stage.outputs import ResponseRewardsOutput

_INCOMING = "CREATE TEMP TABLE incoming_values (entrant_id uuid, position int, sample int, value float8) ON COMMIT DROP"
_STORE = """
    INSERT INTO evaluation_reward_values (assessment_id, entrant_id, position, sample, value)
    SELECT :assessment, i.entrant_id, i.position, i.sample, i.value
    FROM incoming_values i JOIN evaluation_entrants e ON e.id = i.entrant_id AND e.evaluation_id = :evaluation
    ON CONFLICT (assessment_id, entrant_id, position, sample) DO UPDATE SET value = EXCLUDED.value
"""


def assessments_of(session: Session, evaluation: Evaluation) -> list[RewardAssessment]:
    """The assessments in the order in which they were asked for."""
    query = select(RewardAssessment).where(RewardAssessment.evaluation_id == evaluation.id)
    return list(session.scalars(query.order_by(RewardAssessment.id)))


def assess(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    ref: str,
    actor: str,
    engine: EngineName | None = None,
    stage: RecipeStage | None = None,
    name: str | None = None,
) -> RewardAssessment:
    """Let a reward model score all responses, once they are there. Asked again it scores those that are new. For a
    recipe's `stage` its run is one of that stage's. `name`: another than the model's.

    Raises `NotFound`, `BadInput` (`wrong_role`).
    """
    model = get_model(session, project, ref)
    if model.role != "reward":
        raise BadInput(
            f"{model.name!r} is a model of role {model.role}, which gives no rewards",
            code="wrong_role",
            hint=what_to_name(model.role, ("reward",)),
        )
    assessment = next(
        (existing for existing in assessments_of(session, evaluation) if existing.model_id == model.id), None
    )
    if assessment is None:
        assessment = RewardAssessment(
            evaluation_id=evaluation.id,
            name=name or model.name,
            model_id=model.id,
            content_hash=model.artifact_hash,
            normaliser=_known_normaliser(session, project, model) if stage is None or not stage.labelled else None,
            created_by=actor,
        )
        session.add(assessment)
        session.flush()
    if _has_work(session, assessment, and_running=False):
        _start(session, project, evaluation, assessment, model, actor, engine, stage)
    changed(session, evaluation, "rewards")
    return assessment


def assess_known_quality(
    session: Session, project: Project, evaluation: Evaluation, kind: KnownQuality, actor: str, stage: RecipeStage
) -> RewardAssessment:
    """Add what a program knows of the answers to the reward models, in its own units."""
    assessment = RewardAssessment(
        evaluation_id=evaluation.id, name=KNOWN_QUALITY, content_hash=MARKS[kind], created_by=actor
    )
    session.add(assessment)
    session.flush()
    _start(session, project, evaluation, assessment, None, actor, stage=stage)
    return assessment


def assess_new_responses(session: Session, project: Project, evaluation: Evaluation, actor: str) -> None:
    """Let every reward model of the evaluation score what was added to it."""
    for assessment in assessments_of(session, evaluation):
        model = session.get(Model, assessment.model_id) if assessment.model_id else None
        can_score = model is not None or marked(assessment.content_hash) is not None
        if can_score and _has_work(session, assessment, and_running=True):
            _start(session, project, evaluation, assessment, model, actor)


def store_file(session: Session, run: Run, output: ResponseRewardsOutput, path: Path) -> None:
    """Store the values that a reward run found, in the transaction that ends it. What it found out about held-out
    pairs is kept where nothing is known yet."""
    evaluation, assessment = part_of_run(session, run, RewardAssessment, "assessment")
    session.execute(text(_INCOMING))
    copying = "COPY incoming_values FROM STDIN"
    with path.open("rb") as file, copy_in(session, copying) as copy:
        for line in file:
            row = orjson.loads(line)
            copy.write_row((row["entrant"], row["position"], row["sample"], float(row["value"])))
    session.execute(text(_STORE), {"assessment": assessment.id, "evaluation": evaluation.id})
    session.execute(text("DROP TABLE incoming_values"))
    summary = output.found
    if assessment.normaliser is None and summary.normaliser is not None:
        assessment.normaliser = summary.normaliser.model_dump(mode="json")
    if assessment.summary is None:
        assessment.summary = summary.model_dump(mode="json", exclude={"normaliser"})
    session.flush()
    changed(session, evaluation, "rewards")


def _has_work(session: Session, assessment: RewardAssessment, *, and_running: bool) -> bool:
    """Whether anything is there, or on its way, that no run of it is going to score. `and_running`: what is new may
    have come after a run that is under way had begun."""
    run = session.get(Run, assessment.run_id) if assessment.run_id else None
    if run is None:
        return True
    waits_for = select(RunInput.upstream_run_id).where(RunInput.run_id == run.id, RunInput.upstream_run_id.is_not(None))
    entrant_runs = select(Entrant.run_id, Run.state).join(Run, Run.id == Entrant.run_id)
    coming = entrant_runs.where(
        Entrant.evaluation_id == assessment.evaluation_id,
        Run.state.not_in(ENDED),
        Entrant.run_id.not_in(waits_for),
    )
    if session.execute(coming).first() is not None:
        return True
    # A run that has not begun will read all responses that are there by then.
    will_do = ("pending", "queued") if and_running else ("pending", "queued", "running")
    return run.state not in will_do and missing_values(session, assessment) > 0


def missing_values(session: Session, assessment: RewardAssessment) -> int:
    """Responses that have no value yet."""
    responses = (
        select(func.count())
        .select_from(Response)
        .join(Entrant, Entrant.id == Response.entrant_id)
        .where(Entrant.evaluation_id == assessment.evaluation_id)
    )
    values = select(func.count()).select_from(RewardValue).where(RewardValue.assessment_id == assessment.id)
    return (session.scalar(responses) or 0) - (session.scalar(values) or 0)


def _start(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    assessment: RewardAssessment,
    model: Model | None,
    actor: str,
    engine: EngineName | None = None,
    stage: RecipeStage | None = None,
) -> None:
    """Its run waits for the answers that are still being made, and for an earlier run of its own. Without an `engine`
    that of the earlier run. Without a `model` the known quality is looked up."""
    earlier = session.get(Run, assessment.run_id) if assessment.run_id else None
    inputs = {"reward": InputRef(model=model.id)} if model is not None else {}
    awaited = [entrant.run_id for entrant in entrants_of(session, evaluation) if entrant.run_id]
    states = select(Run.id).where(Run.id.in_(awaited), Run.state != "succeeded").order_by(Run.id)
    for number, run_id in enumerate(session.scalars(states)):
        inputs[f"{AFTER}{number}"] = InputRef(run=run_id)
    # A stage that only decides about the next round holds raw rewards of one model against each other.
    background = stage is None or not stage.config.decides
    if background and assessment.summary is None and (pairs := _preferences(session, model, stage)) is not None:
        inputs["preferences"] = InputRef(dataset=pairs.id)
    if background and model is not None and assessment.normaliser is None:
        labelled = (stage.labelled if stage is not None else None) or _labelled(session, evaluation)
        if labelled is not None:
            inputs["labelled"] = InputRef(dataset=labelled.id)
    how: dict[str, Any] = {"engine": engine or (earlier.config.get("engine") if earlier else None) or "transformers"}
    if stage is not None and model is not None:
        how = stage.config.model_dump(include={"engine", "vllm"})
    named: dict[str, Any] = {"name": f"{evaluation.name}.{assessment.name}"[:128], **child_of(stage, assessment.name)}
    run = create_run(
        session,
        project,
        **named,
        config=RewardConfig(
            evaluation=evaluation.id,
            assessment=assessment.id,
            quality=marked(assessment.content_hash) if model is None else None,
            seed=evaluation.seed,
            **how,
        ),
        inputs=inputs,
        pool=evaluation.pool or "default",
        # What it scores is not among its inputs, so equal runs cannot be recognised.
        reuse=False,
        created_by=actor,
    )
    assessment.run_id = run.id
    session.flush()


def _preferences(session: Session, model: Model | None, stage: RecipeStage | None) -> Dataset | None:
    """The pairs that a recipe names, else those that the reward model was trained on, whose held-out pairs it has not
    seen."""
    if stage is not None and stage.preferences is not None:
        return stage.preferences
    run = session.get(Run, model.run_id) if model is not None and model.run_id else None
    given = session.get(RunInput, (run.id, "data")) if run is not None else None
    dataset = None
    if given is not None and given.dataset_id is not None:
        dataset = session.get(Dataset, given.dataset_id)
    return dataset if dataset is not None and dataset.kind == "preferences" and dataset.held_out_rows else None


def _known_normaliser(session: Session, project: Project, model: Model) -> dict[str, object] | None:
    """The normaliser of the newest dataset that this model has labelled."""
    return session.scalar(
        select(Dataset.normaliser)
        .join(RewardSource, RewardSource.id == Dataset.reward_source_id)
        .where(
            Dataset.project_id == project.id,
            RewardSource.model_id == model.id,
            func.jsonb_typeof(Dataset.normaliser) == "object",
        )
        .order_by(Dataset.id.desc())
        .limit(1)
    )


def _labelled(session: Session, evaluation: Evaluation) -> Dataset | None:
    """Labelled rows that an entrant was trained on: the answers that z units are of."""
    entrants = [e.model_id for e in entrants_of(session, evaluation) if e.model_id]
    models = session.scalars(select(Model).where(Model.id.in_(entrants)).order_by(Model.id)).all()
    labelled = (dataset for model in models for dataset in training_data(session, model) if dataset.kind == "labelled")
    return next(labelled, None)
