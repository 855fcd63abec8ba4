"""Who answers what a lower domain asks."""

from __future__ import annotations

import uuid

from pydantic import BaseModel
from sqlalchemy.orm import Session

from steerboard.accounts import hooks as accounts
from steerboard.accounts.access import Access
from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.datasets import hooks as datasets
from steerboard.datasets.cleaning import jobs as cleaning
from steerboard.datasets.edits import jobs as edits
from steerboard.datasets.imports.execution import importers as dataset_importers
from steerboard.evaluation import contamination, events, rewards
from steerboard.evaluation.entrants import responses
from steerboard.evaluation.imports import importers as evaluation_importers
from steerboard.evaluation.judges import comparisons
from steerboard.evaluation.lookup import evaluations_with
from steerboard.evaluation.recipe_stage import begin, lookup, outcome
from steerboard.evaluation.reward_judges.launch import reward_judge
from steerboard.marks import hooks as marks
from steerboard.notices import outbox
from steerboard.notices.mentions import write_mention
from steerboard.registry.tables import Model
from steerboard.runs import hooks as runs
from steerboard.runs import references
from steerboard.runs.stored_bytes import total_stored
from steerboard.sharing import links
from steerboard_files.lines import size_of


def _model_hash(session: Session, model_id: uuid.UUID) -> str | None:
    model = session.get(Model, model_id)
    return model.artifact_hash if model else None


def _import_process() -> str:
    return "steerboard.app.import_process"  # which calls `wire` itself, where it needs to


_IMPORTERS = {
    "dataset": dataset_importers.dataset,
    "rewards": dataset_importers.rewards,
    "cleaning": cleaning.requested,
    "cleaning_preview": cleaning.requested_preview,
    "edit": edits.requested_edit,
    "edited_version": edits.requested_version,
    "prompts": evaluation_importers.prompts,
    "answers": evaluation_importers.answers,
    "judgments": evaluation_importers.judgments,
}
_KEEPS_NOTHING = ("cleaning_preview",)


def _import_request(what: str, session: Session, access: Access, given: datasets.ToImport) -> BaseModel:
    if what not in _KEEPS_NOTHING:
        refuse_beyond_storage(session, access.project, size_of(given.source.open()) if given.source else 0)
    return _IMPORTERS[what](session, access, given)


def wire() -> None:
    """Every process that starts the API or ends runs calls it first; again is harmless."""
    accounts.revoke_links.set(links.revoke_of)
    accounts.stored_bytes.set(total_stored)
    marks.mentioned.set(write_mention)
    datasets.stage_output.set(references.stage_output)
    datasets.used_by_run.set(references.used_by_run)
    datasets.model_hash.set(_model_hash)
    datasets.import_process.set(_import_process)
    datasets.import_request.set(_import_request)
    datasets.evaluation_texts.set(contamination.evaluation_texts)
    runs.ended.set(outbox.write_endings)
    runs.news.set(outbox.write_news)
    runs.evaluation_run_moved.set(events.run_moved)
    runs.store_responses.set(responses.store_file)
    runs.store_response_rewards.set(rewards.store_file)
    runs.store_verdicts.set(comparisons.store_file)
    runs.copy_responses.set(responses.copy_from_equal_run)
    runs.begin_evaluation.set(begin.begin)
    runs.finish_evaluation.set(outcome.outcome)
    runs.evaluation_is_there.set(lookup.is_there)
    runs.evaluations_with.set(evaluations_with)
    runs.reward_judge.set(reward_judge)
