"""The corrections of a campaign as a dataset of instructions, to fine-tune on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.pairs import register_made
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.ranking.campaigns.schemas import CorrectionsCreate
from steerboard.evaluation.ranking.counted import counted
from steerboard.evaluation.ranking.tables import Campaign
from steerboard.evaluation.tables import Evaluation, EvaluationPrompt, Response
from steerboard.platform.names import check_name
from steerboard_contracts.errors import BadInput


def create(
    session: Session, project: Project, evaluation: Evaluation, campaign: Campaign, given: CorrectionsCreate, actor: str
) -> Dataset:
    """One row for every corrected answer, in the order of the prompts and annotators, with who wrote it and when.

    Raises `BadInput` (`no_corrections`, `invalid_name`), `EmptySelection` where nothing was corrected.
    """
    if campaign.task_type != "correction":
        raise BadInput(
            f"{campaign.name!r} asks for no corrections", code="no_corrections", hint="Name a campaign of corrections."
        )
    base = check_name(given.name or f"{evaluation.name}-corrections")
    # One at a time, or two calls would choose the same number.
    session.execute(select(Evaluation.id).where(Evaluation.id == evaluation.id).with_for_update(key_share=True))
    left_out: Counter[str] = Counter()
    origin = {
        "type": "evaluation",
        "evaluation": {"id": str(evaluation.id), "name": evaluation.name, "version": evaluation.version},
        "sources": [{"kind": "campaign", "id": str(campaign.id), "name": campaign.name}],
        "unchanged": given.unchanged,
        "actor": actor,
    }
    return register_made(
        session,
        project,
        base,
        _rows(session, campaign, left_out, unchanged=given.unchanged),
        kind="instructions",
        origin=lambda: origin,
        left_out=left_out,
        split=given.split,
        nothing=("no answer was corrected", "Wait for annotators, or take the answers that were accepted as well."),
    )


def _rows(session: Session, campaign: Campaign, left_out: Counter[str], *, unchanged: bool) -> Iterator[dict[str, Any]]:
    (entrant,) = campaign.entrants
    prompts = {
        prompt.position: prompt
        for prompt in session.scalars(
            select(EvaluationPrompt).where(EvaluationPrompt.evaluation_id == campaign.evaluation_id)
        )
    }
    answered = select(Response.position, Response.turns).where(Response.entrant_id == entrant, Response.sample == 0)
    answers: dict[int, list[str]] = {row.position: row.turns for row in session.execute(answered)}
    for task in counted(session, campaign):
        prompt, turns = prompts[task.position], answers[task.position]
        assert task.correction is not None
        assert task.at is not None
        edited = task.correction.strip() != turns[-1].strip()
        if not edited and not unchanged:
            left_out["unchanged"] += 1
            continue
        history = [{"role": message["role"], "content": message["content"]} for message in prompt.messages]
        for reply, follow_up in zip(turns[:-1], prompt.follow_ups, strict=False):
            history += [{"role": "assistant", "content": reply}, {"role": "user", "content": follow_up}]
        if not all(message["content"].strip() for message in history):
            left_out["empty"] += 1
            continue
        yield {
            "prompt": history,
            "response": task.correction,
            "source": campaign.name,
            "position": task.position,
            "question_id": prompt.question_id,
            "turn": len(turns),
            "original": turns[-1],
            "edited": edited,
            "by": task.by,
            "at": task.at.isoformat(),
            "item": str(task.item_id),
            **({"replies": task.replies} if task.replies else {}),
            **({"flag": task.flag} if task.flag else {}),
            **({"adjudicated": True} if task.adjudicated else {}),
        }
