"""The end of a recipe's evaluate stage: what its evaluation found, as the paper's table."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.entrants.responses import entrants_of, responses_of
from steerboard.evaluation.events import changed
from steerboard.evaluation.held_out_changes import changes_of_pairs, changes_of_prompts
from steerboard.evaluation.recipe_stage import judge, table
from steerboard.evaluation.recipe_stage.decision import decided, decided_by
from steerboard.evaluation.recipe_stage.lookup import evaluation_of
from steerboard.evaluation.recipe_stage.table import Entry, Findings, Scores
from steerboard.evaluation.recipe_stage.training import training_lines
from steerboard.evaluation.report.assembly import assemble
from steerboard.evaluation.report.loading.loader import read
from steerboard.evaluation.rewards import KNOWN_QUALITY, assessments_of
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, RewardAssessment, RewardValue
from steerboard.registry.tables import Model
from steerboard.runs.errors import UnusableInput
from steerboard.runs.inputs import log_prob_cost, resolve, training_cost
from steerboard.runs.tables import Run, RunLog
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.held_out_changes import merged
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report.baseline import BASE
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.pipeline import EvaluationRef, Report
from steerboard_contracts.stage.outputs import RewardSummary


def outcome(session: Session, run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """(report, summary) of an evaluate run whose evaluation is complete. What the report warns of goes into the run's
    log as well. Raises `UnusableInput` when the evaluation has been deleted."""
    evaluation = evaluation_of(session, run)
    if evaluation is None:
        raise UnusableInput(f"the evaluation of run {run.name} has been deleted", hint="Start its recipe again.")
    config = EvaluateConfig.model_validate(run.config)
    given = resolve(session, run)
    width = sum(max(1, len(set(entrant.scores))) for entrant in config.entrants)
    compares = config.judge is not None or judge.INPUT in given
    judged = judge.judged(session, evaluation, width) if compares else None
    decision = decided_by(judged, width, config.seed) if compares and config.decides else None
    found = assemble(read(session, evaluation))
    if any(name.startswith("rewards.") for name in given):
        findings = replace(_findings(session, run, evaluation, config, found), judged=judged)
        document = table.report(config, findings)
        if config.decides and not compares:
            decision = decided(findings.main, config.seed)
    else:
        document = table.without_rewards(_number_of_prompts(session, evaluation))
    document.evaluation = EvaluationRef(id=evaluation.id, name=evaluation.name)
    document.headline = found.headline
    document.decision = decision
    document.training = training_lines(found.entrants)
    changed(session, evaluation, "report")
    for warning in document.warnings:
        session.add(RunLog(run_id=run.id, attempt=run.attempt, level="warning", message=warning))
    return document.model_dump(mode="json"), _summary(document, evaluation)


def _number_of_prompts(session: Session, evaluation: Evaluation) -> int:
    mine = select(func.count()).where(EvaluationPrompt.evaluation_id == evaluation.id)
    return session.scalar(mine) or 0


def _findings(
    session: Session, run: Run, evaluation: Evaluation, config: EvaluateConfig, found: EvaluationReport
) -> Findings:
    prompts = session.execute(
        select(EvaluationPrompt.position, EvaluationPrompt.messages)
        .where(EvaluationPrompt.evaluation_id == evaluation.id)
        .order_by(EvaluationPrompt.position)
    ).all()
    places = {position: place for place, (position, _) in enumerate(prompts)}
    entries = _entries(session, evaluation, config, places, found)
    columns = {entry.id: column for column, entry in enumerate(entries)}
    scores: dict[str, Scores] = {}
    for assessment in assessments_of(session, evaluation):
        scores[assessment.name] = _scores(session, assessment, places, columns)
    quality = scores.pop(KNOWN_QUALITY, None)
    # People may have asked others since; those of the recipe were the first.
    judges = list(scores.values())[: sum(name.startswith("rewards.") for name in resolve(session, run))]
    if not judges:
        raise UnusableInput(f"the reward models of evaluation {evaluation.name} have been deleted")
    taught = {reward.content_hash: reward.trained for reward in found.rewards}
    others = [one for one in judges[1:] if not taught[one.content_hash]]
    return Findings(
        prompts=[messages for _, messages in prompts],
        entries=entries,
        main=judges[0],
        independent=others[0] if others else None,
        quality=quality.rewards if quality is not None else None,
        held_out_changes=merged(
            changes_of_prompts(session, evaluation),
            changes_of_pairs(
                session, run.project_id, [one.summary.dataset for one in judges[:2] if one.summary.dataset]
            ),
        ),
        taught=taught[judges[0].content_hash],
        **_graded_by(_labelled_by(session, run), judges[0]),
    )


def _entries(
    session: Session,
    evaluation: Evaluation,
    config: EvaluateConfig,
    places: Mapping[int, int],
    found: EvaluationReport,
) -> list[Entry]:
    """The entrants of the recipe, with their answers in the order of the prompts."""
    rows = sum(max(1, len(set(entrant.scores))) for entrant in config.entrants)
    costs = {cost.entrant: cost for cost in found.costs}
    fluency = {row.entrant: row for row in found.fluency.entrants} if found.fluency is not None else {}
    entries: dict[uuid.UUID, Entry] = {}
    for entrant in entrants_of(session, evaluation):
        if entrant.position >= rows:
            continue
        model = session.get(Model, entrant.model_id) if entrant.model_id else None
        entries[entrant.id] = Entry(
            id=entrant.id,
            name=entrant.name,
            model=model.name if model is not None else entrant.name,
            method=entrant.method or BASE,
            score=entrant.score,
            best_of=entrant.best_of,
            chosen_by=entrant.chosen_by,
            samples=entrant.samples,
            guidance=entrant.decoding.get("guidance", 1.0),
            info=ModelInfo.model_validate(model.info) if model is not None and model.info else None,
            device_seconds=(sum(training_cost(session, model)) if model is not None else 0.0)
            + _choosing_cost(session, entrant),
            cost=costs.get(entrant.name),
            fluency=fluency.get(entrant.name),
            log_prob_seconds=log_prob_cost(session, model) if model is not None else (0.0, 0.0),
            texts=[""] * len(places),
            tokens=[0] * len(places),
            finished=[True] * len(places),
        )
    for response in responses_of(session, evaluation):
        entry, place = entries.get(response.entrant_id), places.get(response.position)
        if entry is None or place is None or response.sample or not response.turns:
            continue
        entry.texts[place] = response.turns[-1]
        entry.tokens[place] = sum(response.tokens or ())
        entry.finished[place] = all(response.finished or ())
    return list(entries.values())


def _choosing_cost(session: Session, entrant: Entrant) -> float:
    """Device-seconds of sampling several answers and choosing among them, which is all that best-of-n costs."""
    run = session.get(Run, entrant.run_id) if entrant.best_of is not None and entrant.run_id is not None else None
    source = session.get(Run, run.reused_from_id) if run is not None and run.reused_from_id is not None else run
    return source.device_seconds if source is not None else 0.0


def _scores(
    session: Session, assessment: RewardAssessment, places: Mapping[int, int], columns: Mapping[uuid.UUID, int]
) -> Scores:
    values: dict[int, dict[int, float]] = defaultdict(dict)
    found = select(RewardValue).where(RewardValue.assessment_id == assessment.id, RewardValue.sample == 0)
    for value in session.scalars(found):
        if value.entrant_id in columns and value.position in places:
            values[columns[value.entrant_id]][places[value.position]] = value.value
    return Scores(
        content_hash=assessment.content_hash,
        rewards=[[values[column][place] for place in range(len(places))] for column in range(len(columns))],
        normaliser=Normaliser.model_validate(assessment.normaliser) if assessment.normaliser else None,
        summary=RewardSummary.model_validate(assessment.summary or {}),
        name=assessment.name,
    )


def _labelled_by(session: Session, run: Run) -> Normaliser | None:
    """What the labelled rows were normalised by, and so who gave them their rewards."""
    labelled = resolve(session, run).get("labelled")
    if not isinstance(labelled, Dataset) or not labelled.normaliser:
        return None
    return Normaliser.model_validate(labelled.normaliser)


def _graded_by(by: Normaliser | None, main: Scores) -> dict[str, Any]:
    """Who gave the labelled rows their rewards, where it was not the model that judges here, or not that alone."""
    if by is None or by.reward_model_hash == main.content_hash:
        return {}
    one_of_them = by.of_model(main.content_hash) is not None
    return {"graded_by": by.reward_source, "summed": len(by.parts) if one_of_them else 0}


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
