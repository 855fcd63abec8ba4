"""An evaluation of the answers that a dataset has: people, judges and reward models compare them as any others.

The two sides of a pair enter as `chosen` and `rejected`, of the first row with each prompt. Other answers enter as
`answer-1`, `answer-2`, ...: the distinct ones of each prompt, in the order of their rows.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson
from sqlalchemy import Text, cast, func, literal, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.rows.row_writer import copy_in
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.evaluation.dataset_answers.schemas import DatasetAnswers, DatasetEntrant
from steerboard.evaluation.events import changed
from steerboard.evaluation.imports.answers import COPY_RESPONSES, enter
from steerboard.evaluation.prompts.service import MOST_PROMPTS, Chosen, prompt_of, store
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.names import names_like, next_name
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.tools import has_tools

MOST_ANSWERS = 8
"""Answers of a prompt that enter: as many as one item of a campaign has."""
_SIDES = ("chosen", "rejected")


class NoAnswers(BadInput):
    """The dataset's kind has no answers that could be compared."""

    code = "no_answers"
    title = "The dataset has no answers to compare"


@dataclass(frozen=True)
class AnsweredPrompt:
    """A prompt and the texts of its answers, by entrant."""

    prompt: dict[str, Any]
    answers: dict[str, str]


def preview(session: Session, project: Project, dataset: Dataset) -> DatasetAnswers:
    """Raises `NoAnswers`, `EmptySelection`."""
    prompts = answered_prompts(session, dataset)
    made = _made(session, project, dataset)
    return DatasetAnswers(
        entrants=[DatasetEntrant(name=name, prompts=number) for name, number in _entrants(prompts).items()],
        prompts=len(prompts),
        evaluation=made.name if made else None,
    )


def evaluation_of(session: Session, project: Project, dataset: Dataset, actor: str) -> tuple[Evaluation, bool]:
    """The evaluation of the dataset's answers, and whether it was made just now. Raises like `preview`."""
    # One at a time, or two calls would make it twice.
    session.execute(select(Dataset.id).where(Dataset.id == dataset.id).with_for_update(key_share=True))
    made = _made(session, project, dataset)
    if made is not None:
        return made, False
    prompts = answered_prompts(session, dataset)
    base = f"{dataset.name[:110]}-answers"
    evaluation = Evaluation(
        project_id=project.id,
        name=next_name(base, names_like(session, Evaluation.name, f"{base}-", Evaluation.project_id == project.id)),
        description=f"The answers of dataset {dataset.name}",
        prompts_from={"dataset": dataset.name, "dataset_id": str(dataset.id), "split": "all", "answers": True},
        checked_against=[],
        seed=0,
        version=0,
        created_by=actor,
    )
    session.add(evaluation)
    session.flush()
    store(session, evaluation, Chosen([answered.prompt for answered in prompts], evaluation.prompts_from))
    _store_answers(session, evaluation, dataset, prompts)
    changed(session, evaluation, "created")
    return evaluation, True


def answered_prompts(session: Session, dataset: Dataset) -> list[AnsweredPrompt]:
    """Distinct prompts with their distinct answers, in the order of their first rows. Prompts and answers with tools
    are left out. Raises `NoAnswers` for a kind without answers, `EmptySelection`."""
    if dataset.kind in ("prompts", "stepwise"):
        raise NoAnswers(
            f"{dataset.name!r} is a dataset of kind {dataset.kind}",
            hint="Choose one of instructions, preferences, unpaired or labelled answers.",
        )
    owner = dataset.base_dataset_id or dataset.id
    first = func.min(SampleRow.row).label("first")
    drawn = (
        select(SampleRow.prompt_hash, first)
        .where(SampleRow.dataset_id == owner)
        .group_by(SampleRow.prompt_hash)
        .order_by(func.md5(literal("0:") + cast(SampleRow.prompt_hash, Text)))
        .limit(MOST_PROMPTS)
        .subquery()
    )
    rows = session.execute(
        select(SampleRow.row, drawn.c.first, SampleRow.sample, SampleRow.extra)
        .join(drawn, drawn.c.prompt_hash == SampleRow.prompt_hash)
        .where(SampleRow.dataset_id == owner)
        .order_by(drawn.c.first, SampleRow.row)
    ).all()
    prompts = []
    for place, same in groupby(rows, key=lambda row: row.first):
        samples = list(same)
        if has_tools(samples[0].sample["prompt"]):
            continue
        answers = _answers([row.sample for row in samples])
        if answers:
            prompts.append(AnsweredPrompt(prompt_of(place, samples[0].sample, samples[0].extra or {}), answers))
    if not prompts:
        raise EmptySelection(
            f"{dataset.name!r} has no prompt with an answer in text", hint="Choose a dataset of conversations of texts."
        )
    return prompts


def _answers(samples: list[dict[str, Any]]) -> dict[str, str]:
    if "chosen" in samples[0]:
        sides = {side: samples[0][side] for side in _SIDES}
        return sides if all(isinstance(text, str) for text in sides.values()) else {}
    texts = [sample["response"] for sample in samples if isinstance(sample["response"], str)]
    distinct = list(dict.fromkeys(texts))[:MOST_ANSWERS]
    return {f"answer-{number}": text for number, text in enumerate(distinct, start=1)}


def _entrants(prompts: list[AnsweredPrompt]) -> dict[str, int]:
    """Entrant to its number of answers, in the order of their names."""
    return dict(sorted(Counter(name for answered in prompts for name in answered.answers).items()))


def _store_answers(session: Session, evaluation: Evaluation, dataset: Dataset, prompts: list[AnsweredPrompt]) -> None:
    ids: dict[str, uuid.UUID] = {}
    for name, number in _entrants(prompts).items():
        origin = {"dataset": dataset.name, "dataset_id": str(dataset.id), "answers": number}
        ids[name] = enter(session, evaluation, name, name, None, origin).id
    with copy_in(session, COPY_RESPONSES) as copy:
        for position, answered in enumerate(prompts):
            for name, text in answered.answers.items():
                copy.write_row((ids[name], position, 0, orjson.dumps([text]).decode(), None, None))


def _made(session: Session, project: Project, dataset: Dataset) -> Evaluation | None:
    """The oldest evaluation of the dataset's answers."""
    return session.scalar(
        select(Evaluation)
        .where(
            Evaluation.project_id == project.id,
            Evaluation.prompts_from["answers"].as_boolean(),
            Evaluation.prompts_from["dataset_id"].astext == str(dataset.id),
        )
        .order_by(Evaluation.id)
        .limit(1)
    )
