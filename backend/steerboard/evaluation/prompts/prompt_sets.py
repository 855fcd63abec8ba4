"""Prompt sets: read from a file of any project, kept under a name, copied into evaluations."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken
from steerboard.evaluation.prompts.schemas import PromptSetOut
from steerboard.evaluation.prompts.service import MOST_PROMPTS
from steerboard.evaluation.tables import PromptSet
from steerboard.evaluation.unmatched import LeftOut
from steerboard.platform.names import check_name, valid_name
from steerboard_figures.formats.detection import QUESTIONS, expect, read
from steerboard_files.errors import FileTooLarge
from steerboard_files.records import Problem, Source

_FIGURES = text(
    """
    SELECT s.id, count(*), max(1 + jsonb_array_length(p -> 'follow_ups')),
           array_remove(array_agg(DISTINCT p ->> 'category'), NULL)
    FROM prompt_sets s CROSS JOIN LATERAL jsonb_array_elements(s.prompts) p
    WHERE s.id = ANY(:ids) GROUP BY s.id
    """
)


def import_prompts(
    session: Session, project: Project, source: Source, name: str | None, format: str, actor: str
) -> PromptSet:
    """All rows of a file. Raises `RowsRefused` naming every bad line, `NameTaken`, `FileTooLarge`, and what reading
    raises."""
    name = check_name(name) if name is not None else _name_of(source.label)
    taken = select(PromptSet.id).where(PromptSet.project_id == project.id, PromptSet.name == name)
    if session.scalar(taken) is not None:
        raise NameTaken(f"there is already a prompt set {name!r}", hint="Give it another `name`.")
    format = expect(source, "questions", format)
    prompts = _questions(source, format)
    made = PromptSet(project_id=project.id, name=name, format=format, prompts=prompts, created_by=actor)
    session.add(made)
    session.flush()
    return made


def _questions(source: Source, format: str) -> list[dict[str, Any]]:
    left_out = LeftOut()
    prompts: list[dict[str, Any]] = []
    lines: dict[str, int] = {}
    rows = 0
    for line, row in read(source, QUESTIONS[format]):
        rows += 1
        if isinstance(row, Problem):
            left_out.unreadable(line, row)
            continue
        prompt = asdict(row[0])
        question_id = prompt["question_id"] if prompt["question_id"] is not None else str(len(prompts))
        if question_id in lines:
            problem = Problem("bad_row", f"has the question_id {question_id} of line {lines[question_id]}")
            left_out.unreadable(line, problem)
            continue
        lines[question_id] = line
        prompts.append({**prompt, "question_id": question_id})
        if len(prompts) > MOST_PROMPTS:
            raise FileTooLarge(
                f"{source.label} has more than {MOST_PROMPTS:,} prompts",
                hint="Import it as a dataset of prompts and evaluate on a part of it.",
            )
    if left_out.bad.total:
        raise left_out.bad.refusal("line", rows, hint="Fix these rows, or remove them. Nothing was imported.")
    return prompts


def sets_out(session: Session, sets: Sequence[PromptSet]) -> list[PromptSetOut]:
    """The sets with figures that the database counts, so that no prompt is loaded."""
    rows = session.execute(_FIGURES, {"ids": [prompt_set.id for prompt_set in sets]})
    figures: dict[uuid.UUID, tuple[int, int, list[str]]] = {
        id_: (n, turns, categories) for id_, n, turns, categories in rows
    }
    listed = []
    for prompt_set in sets:
        prompts, turns, categories = figures.get(prompt_set.id, (0, 0, []))
        listed.append(
            PromptSetOut(
                id=prompt_set.id,
                name=prompt_set.name,
                format=prompt_set.format,
                prompts=prompts,
                turns=turns,
                categories=categories,
                created_by=prompt_set.created_by,
            )
        )
    return listed


def _name_of(label: str) -> str:
    return valid_name(PurePath(label).name.removesuffix(".gz").rsplit(".", 1)[0])
