"""The files that an evaluation's stages read, from the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.rows.exporting import renamed_at_end
from steerboard.evaluation.entrants.responses import turns_before_last
from steerboard.evaluation.judges import comparisons
from steerboard.evaluation.lookup import part_of_run
from steerboard.evaluation.tables import Entrant, EvaluationPrompt, Response, RewardAssessment, RewardValue
from steerboard.runs.tables import Run
from steerboard_contracts.stage.inputs import PromptsInput, ResponsesInput, StageInput

_BATCH = 1000


def inputs_of(session: Session, run: Run, folder: Path) -> dict[str, StageInput]:
    """What a run of an evaluation reads besides its models and datasets, written into `folder`; nothing for others.

    Raises `UnusableInput` when the evaluation has been deleted.
    """
    if run.kind not in _WRITERS:
        return {}
    name, write = _WRITERS[run.kind]
    return {name: write(session, run, folder / f"{name}.jsonl")}


def _prompts(session: Session, run: Run, path: Path) -> PromptsInput:
    evaluation, _ = part_of_run(session, run, Entrant, "entrant")
    names = "position", "category", "messages", "follow_ups"
    columns = [getattr(EvaluationPrompt, name) for name in names]
    query = select(*columns).where(EvaluationPrompt.evaluation_id == evaluation.id).order_by(EvaluationPrompt.position)
    count = 0
    with renamed_at_end(path) as file:
        for row in session.execute(query):
            file.write(orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return PromptsInput(name=evaluation.name, path=str(path), prompts=count)


def _responses(session: Session, run: Run, path: Path) -> ResponsesInput:
    """The responses without a value of this assessment. What has no turn at all cannot be scored."""
    evaluation, assessment = part_of_run(session, run, RewardAssessment, "assessment")
    has_value = (
        select(RewardValue.value)
        .where(
            RewardValue.assessment_id == assessment.id,
            RewardValue.entrant_id == Response.entrant_id,
            RewardValue.position == Response.position,
            RewardValue.sample == Response.sample,
        )
        .exists()
    )
    left = (
        select(Response, EvaluationPrompt.messages, EvaluationPrompt.follow_ups)
        .join(Entrant, Entrant.id == Response.entrant_id)
        .join(
            EvaluationPrompt,
            (EvaluationPrompt.evaluation_id == Entrant.evaluation_id)
            & (EvaluationPrompt.position == Response.position),
        )
        .where(Entrant.evaluation_id == evaluation.id, ~has_value)
        .order_by(Entrant.position, Entrant.id, Response.position, Response.sample)
        .execution_options(yield_per=_BATCH)
    )
    count = 0
    with renamed_at_end(path) as file:
        for response, messages, follow_ups in session.execute(left):
            if not response.turns:
                continue
            row = {
                "entrant": str(response.entrant_id),
                "position": response.position,
                "sample": response.sample,
                "prompt": turns_before_last(messages, follow_ups, response.turns),
                "response": response.turns[-1],
            }
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    return ResponsesInput(name=evaluation.name, path=str(path), responses=count)


# By kind of run, what it reads of its evaluation.
_WRITERS: Mapping[str, tuple[str, Callable[[Session, Run, Path], StageInput]]] = {
    "answer": ("prompts", _prompts),
    "reward": ("responses", _responses),
    "compare": ("comparisons", comparisons.write_input),
}
