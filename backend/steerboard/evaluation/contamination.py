"""Prompts of an evaluation that also occur in training data.

Only rows of the train split count: nothing learns from held-out ones. A small search is done where it is asked for, a
large one in the background, where any number of processes may look at once.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.hooks import EvaluationText
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.rows.exporting import stored_rows
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.entrants.lineage import training_data
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.events import changed
from steerboard.evaluation.tables import Evaluation, EvaluationPrompt, PromptSet
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.registry.tables import Model
from steerboard_statistics.texts.overlap import PromptIndex

log = logging.getLogger(__name__)

# Rows that may be looked through within a request.
ROWS_AT_ONCE = 2000


def plan(session: Session, project: Project, evaluation: Evaluation, named: Sequence[str] | None) -> None:
    """Decide where the prompts have to be looked for: in the named datasets, or in all that an entrant has learned
    from. Looks immediately where that is quick. Raises `NotFound`."""
    if named is None:
        ids = [entrant.model_id for entrant in entrants_of(session, evaluation) if entrant.model_id]
        models = session.scalars(select(Model).where(Model.id.in_(ids)).order_by(Model.id)).all()
        datasets = [dataset for model in models for dataset in training_data(session, model)]
    else:
        datasets = [get_dataset(session, project, name) for name in named]
    owners = dict.fromkeys(_owner(session, dataset).id for dataset in datasets)
    known = {entry["id"] for entry in evaluation.checked_against} | set(evaluation.to_check or ())
    new = [str(id_) for id_ in owners if str(id_) not in known]
    if not new:
        return
    evaluation.to_check = [*(evaluation.to_check or ()), *new]
    session.flush()
    rows = session.scalar(select(func.sum(Dataset.rows)).where(Dataset.id.in_([uuid.UUID(id_) for id_ in new])))
    if (rows or 0) <= ROWS_AT_ONCE:
        _check(session, evaluation)


def check_next(session: Session) -> bool:
    """Look for the prompts of one evaluation that no other process is at. Returns whether there was one."""
    waiting = select(Evaluation).where(func.jsonb_typeof(Evaluation.to_check) == "array").order_by(Evaluation.id)
    for evaluation in session.scalars(waiting).all():
        # Not the row's own lock: others change the evaluation while its prompts are looked for.
        lock = text("SELECT pg_try_advisory_xact_lock(hashtextextended('prompts of ' || :id, 0))")
        if session.scalar(lock, {"id": str(evaluation.id)}):
            _check(session, evaluation)
            return True
    return False


def start(sessions: sessionmaker[Session], every_seconds: float, stopping: threading.Event) -> None:
    """Start in a thread of its own. No one waits for its end: a search that is cut short is begun again later."""

    def work() -> None:
        while not stopping.wait(every_seconds):
            try:
                more = True
                while more and not stopping.is_set():
                    with transaction(sessions) as session:
                        more = check_next(session)
            except Exception:
                if not stopping.is_set():
                    log.exception("looking for prompts in training data failed and will be retried")

    threading.Thread(target=work, name="contamination", daemon=True).start()


def counts(session: Session, evaluation: Evaluation) -> tuple[int, int]:
    """(prompts seen exactly, nearly)"""
    match = EvaluationPrompt.seen["match"].astext
    rows = session.execute(
        select(match, func.count()).where(EvaluationPrompt.evaluation_id == evaluation.id).group_by(match)
    )
    prompts_of = {row[0]: row[1] for row in rows}
    return prompts_of.get("exact", 0), prompts_of.get("near", 0)


def prompt_text(messages: Sequence[dict[str, str]]) -> str:
    """What is searched for: the user's messages."""
    return "\n".join(turn["content"] for turn in messages if turn["role"] == "user")


def evaluation_texts(
    session: Session, project_id: uuid.UUID, names: Sequence[str] | None, made_from: uuid.UUID | None
) -> list[EvaluationText]:
    """What is looked for in training data: each text once, those of evaluations first. Without names also without the
    evaluation `made_from`. Raises `NotFound`."""
    prompts = (
        select(Evaluation.name, EvaluationPrompt.position, EvaluationPrompt.messages)
        .join(Evaluation, Evaluation.id == EvaluationPrompt.evaluation_id)
        .where(Evaluation.project_id == project_id)
        .order_by(Evaluation.id, EvaluationPrompt.position)
    )
    sets = select(PromptSet.name, PromptSet.prompts).where(PromptSet.project_id == project_id).order_by(PromptSet.id)
    if names is None and made_from is not None:
        prompts = prompts.where(Evaluation.id != made_from)
    if names is not None:
        prompts, sets = prompts.where(Evaluation.name.in_(names)), sets.where(PromptSet.name.in_(names))
    texts = [
        EvaluationText("evaluation", name, position, prompt_text(messages))
        for name, position, messages in session.execute(prompts)
    ]
    for name, rows in session.execute(sets):
        texts += [
            EvaluationText("prompt_set", name, position, prompt_text(row["messages"]))
            for position, row in enumerate(rows)
        ]
    for name in names or ():
        if not any(text.name == name for text in texts):
            raise NotFound(
                f"there is no evaluation or prompt set {name!r}", hint="List them with `steerboard evaluations list`."
            )
    return list({text.text: text for text in reversed(texts)}.values())[::-1]


def _check(session: Session, evaluation: Evaluation) -> None:
    session.refresh(evaluation, ["to_check"])
    prompts = session.scalars(
        select(EvaluationPrompt)
        .where(EvaluationPrompt.evaluation_id == evaluation.id)
        .order_by(EvaluationPrompt.position)
    ).all()
    index = PromptIndex([prompt_text(prompt.messages) for prompt in prompts])
    matches: dict[int, dict[str, Any]] = {
        at: prompt.seen for at, prompt in enumerate(prompts) if prompt.seen is not None
    }
    todo = list(evaluation.to_check or ())
    checked = []
    for id_ in todo:
        dataset = session.get(Dataset, uuid.UUID(id_))
        if dataset is None:
            continue
        for row, given in _train_texts(session, dataset):
            for match in index.match(given):
                _keep_best(matches, match.prompt, match.kind, dataset, row, match.overlap)
        checked.append({"id": id_, "name": dataset.name, "rows": dataset.rows - dataset.held_out_rows})
    for at, prompt in enumerate(prompts):
        if at in matches and prompt.seen != matches[at]:
            prompt.seen = matches[at]
    session.flush()
    # Another dataset may have been named while these were looked through.
    session.refresh(evaluation, ["to_check", "checked_against"], with_for_update={"key_share": True})
    left = [id_ for id_ in evaluation.to_check or () if id_ not in todo]
    known = {entry["id"] for entry in evaluation.checked_against}
    evaluation.checked_against = [
        *evaluation.checked_against,
        *(dataset for dataset in checked if dataset["id"] not in known),
    ]
    evaluation.to_check = left or None
    session.flush()
    changed(session, evaluation, "contamination")


def _keep_best(
    matches: dict[int, dict[str, Any]], at: int, kind: str, dataset: Dataset, row: int, overlap: float
) -> None:
    """An exact match before a near one, then the larger overlap, then the first."""
    known = matches.get(at)
    if known is not None and (known["match"] == "exact", known["overlap"]) >= (kind == "exact", overlap):
        return
    matches[at] = {"match": kind, "dataset": dataset.name, "row": row, "overlap": overlap}


def _train_texts(session: Session, dataset: Dataset) -> Iterator[tuple[int, str]]:
    """(row, text) of what users say in the train split: all turns together, and each on its own."""
    for row in stored_rows(session, dataset):
        if row.held_out:
            continue
        turns = [turn["content"] for turn in orjson.loads(row.sample)["prompt"] if turn["role"] == "user"]
        yield row.row, "\n".join(turns)
        if len(turns) > 1:
            for turn in turns:
                yield row.row, turn


def _owner(session: Session, dataset: Dataset) -> Dataset:
    """Whose rows a dataset reads."""
    return session.get_one(Dataset, dataset.base_dataset_id) if dataset.base_dataset_id else dataset
