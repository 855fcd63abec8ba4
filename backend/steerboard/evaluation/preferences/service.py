"""Preference datasets from people's rankings and judges' verdicts, to train the next reward model on."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.service import register_rows
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.preferences.pairs import Pair, judged_pairs, ranked_pairs
from steerboard.evaluation.preferences.schemas import (
    PreferencesChoice,
    PreferencesCreate,
    PreferenceSource,
    PreferencesPreview,
)
from steerboard.evaluation.ranking.campaigns.service import get_campaign
from steerboard.evaluation.ranking.tables import Campaign, RankingTask
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Judge, Response
from steerboard.platform.names import check_name, names_like, next_name
from steerboard.platform.storage import scratch
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.samples import Message, is_held_out, prompt_hash


def create(session: Session, project: Project, evaluation: Evaluation, given: PreferencesCreate, actor: str) -> Dataset:
    """One row a pair, in the order of the sources, prompts and annotators; with who decided it, when, and on what.

    Raises `BadInput` (`invalid_name`, `unknown_criterion`), `NotFound`, `EmptySelection` where nothing is preferred.
    """
    sources = _sources(session, evaluation, given)
    name = _next_name(session, project, evaluation, given.name)
    rows = _Rows(session, evaluation)
    with scratch.folder("preferences") as folder:
        path = folder / "preferences.jsonl"
        with create_file(path, "the pairs") as file:
            for source in sources:
                for row in rows.of(_pairs(session, source, given, rows.order)):
                    file.write(orjson.dumps(row) + b"\n")
        if rows.written == 0:
            raise EmptySelection(
                "no answer was preferred to another", hint="Wait for rankings or verdicts that are not all ties."
            )
        origin = {
            "type": "evaluation",
            "evaluation": {"id": str(evaluation.id), "name": evaluation.name, "version": evaluation.version},
            "sources": [_about(source) for source in sources],
            "pairs": given.pairs,
            "criterion": given.criterion,
            "split": given.split,
            "left_out": dict(rows.left_out),
            "actor": actor,
        }
        return register_rows(
            session,
            project,
            name=name,
            kind="preferences",
            path=path,
            run_id=None,
            origin=origin,
            hold_out=given.split == "by_prompt",
        )


def preview(session: Session, project: Project, evaluation: Evaluation, given: PreferencesChoice) -> PreferencesPreview:
    """How many pairs there are, and how many the project's split holds out. Raises as `create`, except for the name."""
    rows = _Rows(session, evaluation)
    held_out = 0
    prompts: dict[bool, set[int]] = {True: set(), False: set()}
    for source in _sources(session, evaluation, given):
        for row in rows.of(_pairs(session, source, given, rows.order)):
            hash64 = prompt_hash([Message.model_validate(message) for message in row["prompt"]], project.split_salt)
            out = is_held_out(hash64, project.held_out_fraction)
            prompts[out].add(hash64)
            held_out += out
    return PreferencesPreview(
        pairs=rows.written,
        held_out_pairs=held_out,
        prompts=len(prompts[True]) + len(prompts[False]),
        held_out_prompts=len(prompts[True]),
        left_out=dict(rows.left_out),
    )


def _sources(session: Session, evaluation: Evaluation, given: PreferencesChoice) -> list[Campaign | Judge]:
    sources = [_source(session, evaluation, source) for source in given.sources]
    for source in sources:
        if isinstance(source, Campaign):
            _check_criterion(session, source, given.criterion)
    return sources


def _source(session: Session, evaluation: Evaluation, given: PreferenceSource) -> Campaign | Judge:
    if given.campaign is not None:
        return get_campaign(session, evaluation, given.campaign)
    return get_judge(session, evaluation, given.judge or "")


def _pairs(
    session: Session, source: Campaign | Judge, given: PreferencesChoice, order: dict[uuid.UUID, int]
) -> Iterator[Pair]:
    if isinstance(source, Campaign):
        return ranked_pairs(session, source, given.criterion, given.pairs)
    return judged_pairs(session, source, order, given.pairs)


def _about(source: Campaign | Judge) -> dict[str, str]:
    kind = "campaign" if isinstance(source, Campaign) else "judge"
    return {"kind": kind, "id": str(source.id), "name": source.name}


def _check_criterion(session: Session, campaign: Campaign, criterion: str | None) -> None:
    names = [one["name"] for one in campaign.criteria]
    hint = f"The criteria of {campaign.name!r}: {', '.join(names) or 'none'}."
    if criterion is not None and criterion not in names:
        raise BadInput(f"{campaign.name!r} has no criterion {criterion!r}", code="unknown_criterion", hint=hint)
    if criterion is None and names:
        overall = select(func.count()).where(RankingTask.campaign_id == campaign.id, RankingTask.ranks.is_not(None))
        if not session.scalar(overall):
            raise BadInput(f"{campaign.name!r} was ranked by criteria only", code="unknown_criterion", hint=hint)


def _next_name(session: Session, project: Project, evaluation: Evaluation, name: str | None) -> str:
    """NAME-1, NAME-2, ...: one above the highest that there is."""
    base = check_name(name or f"{evaluation.name}-preferences")
    # One at a time, or two calls would choose the same number.
    session.execute(select(Evaluation.id).where(Evaluation.id == evaluation.id).with_for_update(key_share=True))
    return next_name(base, names_like(session, Dataset.name, f"{base}-", Dataset.project_id == project.id))


class _Rows:
    """Turns pairs into rows of a preference dataset.

    Of several turns the pair is about the last one (or the one that was judged), and the conversation before it is the
    prompt: that of the chosen side, since a pair has one prompt. `same_history`: whether the other side had the same.
    """

    def __init__(self, session: Session, evaluation: Evaluation) -> None:
        entrants = entrants_of(session, evaluation)
        self.order = {entrant.id: place for place, entrant in enumerate(entrants)}
        self.left_out: Counter[str] = Counter()
        self.written = 0
        self._names = {entrant.id: entrant.name for entrant in entrants}
        self._prompts = {
            prompt.position: prompt
            for prompt in session.scalars(
                select(EvaluationPrompt).where(EvaluationPrompt.evaluation_id == evaluation.id)
            )
        }
        first = (
            select(Response.entrant_id, Response.position, Response.turns)
            .join(Entrant, Entrant.id == Response.entrant_id)
            .where(Entrant.evaluation_id == evaluation.id, Response.sample == 0)
        )
        self._turns: dict[tuple[uuid.UUID, int], list[str]] = {
            (entrant, position): turns for entrant, position, turns in session.execute(first)
        }

    def of(self, pairs: Iterator[Pair]) -> Iterator[dict[str, Any]]:
        for pair in pairs:
            row = self._row(pair)
            if isinstance(row, str):
                self.left_out[row] += 1
                continue
            self.written += 1
            yield row

    def _row(self, pair: Pair) -> dict[str, Any] | str:
        """The row, or why there is none."""
        prompt = self._prompts.get(pair.position)
        chosen = self._turns.get((pair.chosen, pair.position))
        rejected = self._turns.get((pair.rejected, pair.position))
        if prompt is None or chosen is None or rejected is None:
            return "no_answer"
        turn = pair.turn or min(len(chosen), len(rejected), 1 + len(prompt.follow_ups))
        if turn < 1 or turn > min(len(chosen), len(rejected), 1 + len(prompt.follow_ups)):
            return "no_answer"
        history = [*prompt.messages]
        for said, asked in zip(chosen[: turn - 1], prompt.follow_ups, strict=False):
            history += [{"role": "assistant", "content": said}, {"role": "user", "content": asked}]
        texts = chosen[turn - 1], rejected[turn - 1]
        if not all(text.strip() for text in (*texts, *(message["content"] for message in history))):
            return "empty"
        if texts[0] == texts[1]:
            return "identical"
        return {
            "prompt": [{"role": message["role"], "content": message["content"]} for message in history],
            "chosen": texts[0],
            "rejected": texts[1],
            "position": pair.position,
            "question_id": prompt.question_id,
            "turn": turn,
            "same_history": chosen[: turn - 1] == rejected[: turn - 1],
            "chosen_entrant": self._names[pair.chosen],
            "rejected_entrant": self._names[pair.rejected],
            **{key: value for key, value in pair.about.items() if value is not None},
        }
