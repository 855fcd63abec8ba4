"""The end of a recipe's evaluate stage: what its evaluation found, as the paper's table."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.events import changed
from steerboard.evaluation.recipe_stage import judge, table
from steerboard.evaluation.recipe_stage.decision import decided, decided_by
from steerboard.evaluation.recipe_stage.findings import Findings, Training
from steerboard.evaluation.recipe_stage.lookup import evaluation_of
from steerboard.evaluation.recipe_stage.training import training_lines
from steerboard.evaluation.report.assembly import assemble
from steerboard.evaluation.report.data import EvaluationData
from steerboard.evaluation.report.loading.loader import read
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response
from steerboard.registry.tables import Model
from steerboard.runs.errors import UnusableInput
from steerboard.runs.inputs import log_prob_cost, resolve, training_cost
from steerboard.runs.tables import Run, RunLog
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.pipeline import EvaluationRef, Report


def outcome(session: Session, run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """(report, summary) of an evaluate run whose evaluation is complete. What the report warns of goes into the run's
    log as well. Raises `UnusableInput` when the evaluation has been deleted."""
    evaluation = evaluation_of(session, run)
    if evaluation is None:
        raise UnusableInput(f"the evaluation of run {run.name} has been deleted", hint="Start its recipe again.")
    config = EvaluateConfig.model_validate(run.config)
    given = resolve(session, run)
    width = _width(config)
    compares = config.judge is not None or judge.INPUT in given
    judged = judge.judged(session, evaluation, width) if compares else None
    decision = decided_by(judged, width, config.seed) if compares and config.decides else None
    data = read(session, evaluation)
    found = assemble(data)
    if any(name.startswith("rewards.") for name in given):
        findings = replace(_findings(session, given, config, data, found), judged=judged)
        document = table.report(config, findings)
        if config.decides and not compares:
            decision = decided(findings.main.reward_model, findings.main.units, *findings.last_two(), config.seed)
    else:
        document = table.without_rewards(len(data.prompts))
    document.evaluation = EvaluationRef(id=evaluation.id, name=evaluation.name)
    document.headline = found.headline
    document.decision = decision
    document.training = training_lines(found.entrants)
    changed(session, evaluation, "report")
    for warning in document.warnings:
        session.add(RunLog(run_id=run.id, attempt=run.attempt, level="warning", message=warning))
    return document.model_dump(mode="json"), _summary(document, evaluation)


def _findings(
    session: Session,
    inputs: Mapping[str, Dataset | Model],
    config: EvaluateConfig,
    data: EvaluationData,
    found: EvaluationReport,
) -> Findings:
    findings = Findings(
        data=data,
        report=found,
        entrants=_width(config),
        rewards=sum(name.startswith("rewards.") for name in inputs),
    )
    if not findings.sources:
        raise UnusableInput(f"the reward models of evaluation {found.evaluation} have been deleted")
    graded_by, summed = _graded_by(inputs.get("labelled"), findings.main.content_hash)
    return replace(
        findings,
        training=_training(session, data),
        shown=_shown(session, data, config.examples),
        graded_by=graded_by,
        summed=summed,
    )


def _width(config: EvaluateConfig) -> int:
    """Entrants of the recipe: each model once for each of its scores."""
    return sum(max(1, len(set(entrant.scores))) for entrant in config.entrants)


def _training(session: Session, data: EvaluationData) -> dict[uuid.UUID, Training]:
    found = {}
    entrants = select(Entrant).where(Entrant.evaluation_id == data.id)
    for entrant in session.scalars(entrants):
        model = session.get(Model, entrant.model_id) if entrant.model_id else None
        found[entrant.id] = Training(
            info=ModelInfo.model_validate(model.info) if model is not None and model.info else None,
            device_seconds=(sum(training_cost(session, model)) if model is not None else 0.0)
            + _choosing_cost(session, entrant),
            log_prob_seconds=log_prob_cost(session, model) if model is not None else (0.0, 0.0),
        )
    return found


def _shown(session: Session, data: EvaluationData, prompts: int) -> dict[int, tuple[str, dict[uuid.UUID, str]]]:
    """By row: the text of each of the first `prompts`, and the first answer of every entrant to it."""
    positions = [prompt.position for prompt in data.prompts[:prompts]]
    wanted = EvaluationPrompt.evaluation_id == data.id, EvaluationPrompt.position.in_(positions)
    texts = session.execute(select(EvaluationPrompt.position, EvaluationPrompt.messages).where(*wanted)).all()
    asked = {position: messages[-1]["content"] for position, messages in texts}
    answers: dict[int, dict[uuid.UUID, str]] = {position: {} for position in positions}
    entrants = [who.id for who in data.entrants]
    mine = Response.entrant_id.in_(entrants), Response.position.in_(positions), Response.sample == 0
    for response in session.scalars(select(Response).where(*mine)):
        answers[response.position][response.entrant_id] = response.turns[-1] if response.turns else ""
    return {row: (asked[position], answers[position]) for row, position in enumerate(positions)}


def _choosing_cost(session: Session, entrant: Entrant) -> float:
    """Device-seconds of sampling several answers and choosing among them, which is all that best-of-n costs."""
    run = session.get(Run, entrant.run_id) if entrant.best_of is not None and entrant.run_id is not None else None
    source = session.get(Run, run.reused_from_id) if run is not None and run.reused_from_id is not None else run
    return source.device_seconds if source is not None else 0.0


def _graded_by(labelled: Any, judged_by: str) -> tuple[str | None, int]:
    """Who gave the labelled rows their rewards, where it was not the model that judges here, or not that alone; and of
    how many rewards, that model's among them, theirs is the sum."""
    if not isinstance(labelled, Dataset) or not labelled.normaliser:
        return None, 0
    by = Normaliser.model_validate(labelled.normaliser)
    if by.reward_model_hash == judged_by:
        return None, 0
    return by.reward_source, len(by.parts) if by.of_model(judged_by) is not None else 0


def _summary(document: Report, evaluation: Evaluation) -> dict[str, Any]:
    if not document.methods:
        return {"evaluation": evaluation.name, "prompts": document.prompts}
    highest = max(document.methods, key=lambda row: row.reward_mean)
    winner = document.headline.winner if document.headline is not None else None
    return {
        "evaluation": evaluation.name,
        "prompts": document.prompts,
        "winner": winner or "none",
        "highest_mean": highest.name,
        "highest_mean_reward": highest.reward_mean,
        "held_out_accuracy": document.reward_model.held_out_accuracy,
        "spearman": document.control.spearman if document.control else None,
    }
