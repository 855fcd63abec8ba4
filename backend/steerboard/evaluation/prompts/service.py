"""The origin of an evaluation's prompts, and how they are read again."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Text, cast, func, insert, literal, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.tables import SampleRow
from steerboard.evaluation.prompts.schemas import PromptsFrom
from steerboard.evaluation.tables import Evaluation, EvaluationPrompt, PromptSet
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import find
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.tools import check_texts_only

MOST_PROMPTS = 20_000


class TooManyPrompts(BadInput):
    """An evaluation's prompts are answered by every entrant and kept with every answer."""

    code = "too_many_prompts"
    title = "Too many prompts for an evaluation"


@dataclass(frozen=True)
class Chosen:
    """Rows for `EvaluationPrompt` without their places, and their `prompts_from`."""

    rows: list[dict[str, Any]]
    origin: dict[str, Any]


def choose(session: Session, project: Project, source: PromptsFrom) -> Chosen:
    """Raises `NotFound`, `EmptySelection`, `TooManyPrompts`."""
    chosen = _of_set(session, project, source) if source.set is not None else _of_dataset(session, project, source)
    if not chosen.rows and source.dataset is not None and source.split == "held_out":
        raise EmptySelection(
            f"no row of {chosen.origin['dataset']} is held out",
            hint="Use all of its rows with the split `all`; note that models may have been trained on them.",
        )
    if not chosen.rows:
        raise EmptySelection("there are no prompts to evaluate on", hint="Choose another split or dataset.")
    return chosen


def said_of(origin: dict[str, Any]) -> str:
    """`held-out rows of things`, from the origin that `choose` returns."""
    if dataset := origin.get("dataset"):
        rows = {"held_out": "held-out rows", "train": "training rows"}.get(origin.get("split", ""), "all rows")
        return f"{rows} of {dataset}"
    return f"prompt set {origin['set']}" if origin.get("set") else ""


def store(session: Session, evaluation: Evaluation, chosen: Chosen) -> None:
    """Store the prompts in their order."""
    session.execute(
        insert(EvaluationPrompt),
        [
            {"evaluation_id": evaluation.id, "position": position, "seen": None, **row}
            for position, row in enumerate(chosen.rows)
        ],
    )


def get_prompt_set(session: Session, project: Project, ref: str) -> PromptSet:
    """The prompt set by id or name. Raises `NotFound` (`unknown_prompt_set`), also for another project's."""
    prompt_set = find(
        session, select(PromptSet).where(PromptSet.project_id == project.id), PromptSet.id, PromptSet.name, ref
    )
    if prompt_set is None:
        raise NotFound(
            f"there is no prompt set {ref!r}",
            code="unknown_prompt_set",
            hint="Import it first: `steerboard evaluations import-prompts`, or POST prompt-sets.",
        )
    return prompt_set


def prompts_hash(session: Session, evaluation_id: uuid.UUID) -> str:
    """SHA-256 of all that decides how the prompts are answered: equal for equal prompts in equal order."""
    digest = hashlib.sha256()
    columns = EvaluationPrompt.messages, EvaluationPrompt.follow_ups, EvaluationPrompt.category
    query = select(*columns).where(EvaluationPrompt.evaluation_id == evaluation_id)
    for row in session.execute(query.order_by(EvaluationPrompt.position)):
        digest.update(orjson.dumps(list(row), option=orjson.OPT_SORT_KEYS) + b"\n")
    return digest.hexdigest()


def _of_set(session: Session, project: Project, source: PromptsFrom) -> Chosen:
    prompt_set = get_prompt_set(session, project, source.set or "")
    rows = [
        {
            "question_id": str(prompt["question_id"]),
            "category": prompt.get("category"),
            "messages": prompt["messages"],
            "follow_ups": prompt.get("follow_ups") or [],
            "reference": prompt.get("reference"),
        }
        for prompt in prompt_set.prompts
    ]
    if source.limit is not None and source.limit < len(rows):
        order = sorted(range(len(rows)), key=lambda at: _draw(source.seed, rows[at]["question_id"], at))
        rows = [rows[at] for at in sorted(order[: source.limit])]
    _check_number(len(rows))
    origin = {"set": prompt_set.name, "set_id": str(prompt_set.id), "format": prompt_set.format}
    return Chosen(rows, origin | _drawn(source))


def _of_dataset(session: Session, project: Project, source: PromptsFrom) -> Chosen:
    """Distinct prompts, drawn in the database, in the order of their rows."""
    dataset = get_dataset(session, project, source.dataset or "")
    owner = dataset.base_dataset_id or dataset.id
    conditions = [SampleRow.dataset_id == owner]
    if source.split != "all":
        conditions.append(SampleRow.held_out.is_(source.split == "held_out"))
    order = func.md5(literal(f"{source.seed}:") + cast(SampleRow.prompt_hash, Text))
    drawn = (
        select(func.min(SampleRow.row).label("row"))
        .where(*conditions)
        .group_by(SampleRow.prompt_hash)
        .order_by(order)
        .limit(source.limit or MOST_PROMPTS + 1)
        .subquery()
    )
    samples = session.execute(
        select(SampleRow.row, SampleRow.sample, SampleRow.extra)
        .join(drawn, drawn.c.row == SampleRow.row)
        .where(SampleRow.dataset_id == owner)
        .order_by(SampleRow.row)
    ).all()
    _check_number(len(samples))
    rows = [prompt_of(row, sample, extra or {}) for row, sample, extra in samples]
    origin = {"dataset": dataset.name, "dataset_id": str(dataset.id), "split": source.split}
    return Chosen(rows, origin | _drawn(source))


def prompt_of(row: int, sample: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The prompt of a dataset's row. Raises `BadInput` (`prompt_with_tools`)."""
    check_texts_only(row, sample["prompt"], "entrants of evaluations")
    question, category, reference = extra.get("question_id"), extra.get("category"), sample.get("reference")
    return {
        "question_id": str(question) if isinstance(question, str | int) else str(row),
        "category": category if isinstance(category, str) and category else None,
        "messages": [{"role": turn["role"], "content": turn["content"]} for turn in sample["prompt"]],
        "follow_ups": [],
        "reference": [reference] if reference else None,
    }


def _check_number(number: int) -> None:
    if number > MOST_PROMPTS:
        raise TooManyPrompts(
            f"there are more than {MOST_PROMPTS} prompts", hint="Give a `limit`: that many are sampled with the seed."
        )


def _drawn(source: PromptsFrom) -> dict[str, Any]:
    return {"limit": source.limit, "seed": source.seed} if source.limit is not None else {}


def _draw(seed: int, question_id: str, at: int) -> bytes:
    return hashlib.sha256(f"{seed}:{question_id}:{at}".encode()).digest()
