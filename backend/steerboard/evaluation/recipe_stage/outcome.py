"""The end of a recipe's evaluate stage: the report of its evaluation, kept as it is then."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.events import changed
from steerboard.evaluation.recipe_stage import judge, section
from steerboard.evaluation.recipe_stage.decision import decided, decided_by
from steerboard.evaluation.recipe_stage.findings import Findings
from steerboard.evaluation.recipe_stage.lookup import evaluation_of
from steerboard.evaluation.report.assembly import assemble
from steerboard.evaluation.report.data import EvaluationData
from steerboard.evaluation.report.loading.loader import read
from steerboard.evaluation.tables import Entrant, EvaluationPrompt, Response
from steerboard.registry.tables import Model
from steerboard.runs.errors import UnusableInput
from steerboard.runs.inputs import resolve
from steerboard.runs.tables import Run, RunLog
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.flat import flat
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig


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
    report = assemble(data).report
    if any(name.startswith("rewards.") for name in given):
        findings = replace(_findings(session, given, config, data, report), judged=judged)
        report = section.with_recipe(config, findings)
        if config.decides and not compares:
            decision = decided(findings.main.reward_model, findings.main.units, *findings.last_two(), config.seed)
    else:
        report = section.without_rewards(report, width)
    assert report.recipe is not None
    report.recipe.decision = decision
    changed(session, evaluation, "report")
    for warning in report.recipe.warnings:
        session.add(RunLog(run_id=run.id, attempt=run.attempt, level="warning", message=warning))
    return report.model_dump(mode="json"), _summary(report)


def _findings(
    session: Session,
    inputs: Mapping[str, Dataset | Model],
    config: EvaluateConfig,
    data: EvaluationData,
    report: EvaluationReport,
) -> Findings:
    findings = Findings(
        data=data,
        report=report,
        entrants=_width(config),
        rewards=sum(name.startswith("rewards.") for name in inputs),
    )
    if not findings.sources:
        raise UnusableInput(f"the reward models of evaluation {report.evaluation} have been deleted")
    graded_by, summed = _graded_by(inputs.get("labelled"), findings.main.content_hash)
    return replace(
        findings,
        models=_models(session, data),
        shown=_shown(session, data, config.examples),
        graded_by=graded_by,
        summed=summed,
    )


def _width(config: EvaluateConfig) -> int:
    """Entrants of the recipe: each model once for each of its scores."""
    return sum(max(1, len(set(entrant.scores))) for entrant in config.entrants)


def _models(session: Session, data: EvaluationData) -> dict[uuid.UUID, ModelInfo]:
    """The models by entrant."""
    query = select(Entrant.id, Model.info).join(Model, Model.id == Entrant.model_id)
    rows = session.execute(query.where(Entrant.evaluation_id == data.id))
    return {entrant: ModelInfo.model_validate(info) for entrant, info in rows if info}


def _shown(session: Session, data: EvaluationData, prompts: int) -> dict[int, tuple[str, dict[uuid.UUID, str]]]:
    """The text by row of each of the first `prompts`, and the first answer of every entrant to it."""
    positions = [prompt.position for prompt in data.prompts[:prompts]]
    wanted = EvaluationPrompt.evaluation_id == data.id, EvaluationPrompt.position.in_(positions)
    texts = session.execute(select(EvaluationPrompt.position, EvaluationPrompt.messages).where(*wanted)).all()
    questions = {position: messages[-1]["content"] for position, messages in texts}
    answers: dict[int, dict[uuid.UUID, str]] = {position: {} for position in positions}
    entrants = [entrant.id for entrant in data.entrants]
    conditions = Response.entrant_id.in_(entrants), Response.position.in_(positions), Response.sample == 0
    for response in session.scalars(select(Response).where(*conditions)):
        answers[response.position][response.entrant_id] = response.turns[-1] if response.turns else ""
    return {row: (questions[position], answers[position]) for row, position in enumerate(positions)}


def _graded_by(labelled: Any, judged_by: str) -> tuple[str | None, int]:
    """Who gave the labelled rows their rewards, where it was not the model that judges here, or not that alone; and of
    how many rewards, that model's among them, theirs is the sum."""
    if not isinstance(labelled, Dataset) or not labelled.normaliser:
        return None, 0
    by = Normaliser.model_validate(labelled.normaliser)
    if by.reward_model_hash == judged_by:
        return None, 0
    return by.reward_source, len(by.parts) if by.of_model(judged_by) is not None else 0


def _summary(report: EvaluationReport) -> dict[str, Any]:
    flattened = flat(report)
    if not flattened.methods:
        return {"evaluation": report.evaluation, "prompts": report.prompts}
    highest = max(flattened.methods, key=lambda row: row.reward_mean)
    winner = report.headline.winner if report.headline is not None else None
    return {
        "evaluation": report.evaluation,
        "prompts": report.prompts,
        "winner": winner or "none",
        "highest_mean": highest.name,
        "highest_mean_reward": highest.reward_mean,
        "held_out_accuracy": flattened.reward_model.held_out_accuracy,
        "spearman": flattened.control.spearman if flattened.control else None,
    }
