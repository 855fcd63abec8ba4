"""Preference datasets from people's rankings and judges' verdicts, to train the next reward model on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.pairs import register_pairs
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.preferences.agreement import by_majority
from steerboard.evaluation.preferences.pairs import Choice, PreferenceVote
from steerboard.evaluation.preferences.rows import PairRows
from steerboard.evaluation.preferences.schemas import PreferencesChoice, PreferencesCreate, PreferencesPreview
from steerboard.evaluation.preferences.sources import Sources, sources_of
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.names import check_name
from steerboard_contracts.prompt_split import is_held_out, prompt_hash
from steerboard_contracts.turns import SampleMessage


def create(session: Session, project: Project, evaluation: Evaluation, given: PreferencesCreate, actor: str) -> Dataset:
    """One row per pair, in the order of the sources, prompts and annotators; with who decided it, when, and on what.

    Raises `BadInput` (`invalid_name`, `unknown_criterion`), `NotFound`, `EmptySelection` where nothing is preferred.
    """
    sources = sources_of(session, evaluation, given)
    base = check_name(given.name or f"{evaluation.name}-preferences")
    # One at a time, or two calls would choose the same number.
    session.execute(select(Evaluation.id).where(Evaluation.id == evaluation.id).with_for_update(key_share=True))
    rows = PairRows(session, evaluation, given.min_agreement)
    rows.count_votes(_votes(sources, session, given, rows.order))

    def origin() -> dict[str, Any]:
        return {
            "type": "evaluation",
            "evaluation": {"id": str(evaluation.id), "name": evaluation.name, "version": evaluation.version},
            "sources": sources.about(),
            "left_out_judges": sources.left_out,
            "pairs": given.pairs,
            "criterion": given.criterion,
            "votes": given.votes,
            "min_agreement": given.min_agreement,
            "agreement": rows.mean_agreement,
            "contested": rows.contested,
            "actor": actor,
        }

    return register_pairs(
        session,
        project,
        base,
        rows.of(_all_pairs(sources, session, given, rows)),
        origin=origin,
        left_out=rows.left_out,
        split=given.split,
        hint="Wait for rankings or verdicts that are not all ties, ask for less agreement, or name a judge that is left"
        " out to take its verdicts all the same.",
    )


def preview(session: Session, project: Project, evaluation: Evaluation, given: PreferencesChoice) -> PreferencesPreview:
    """How many pairs there are, and how many the project's split holds out. Raises as `create`, except for the name."""
    rows = PairRows(session, evaluation, given.min_agreement)
    sources = sources_of(session, evaluation, given)
    rows.count_votes(_votes(sources, session, given, rows.order))
    held_out = 0
    prompts: dict[bool, set[int]] = {True: set(), False: set()}
    for row in rows.of(_all_pairs(sources, session, given, rows)):
        hash64 = prompt_hash([SampleMessage.model_validate(message) for message in row["prompt"]], project.split_salt)
        out = is_held_out(hash64, project.held_out_fraction)
        prompts[out].add(hash64)
        held_out += out
    return PreferencesPreview(
        pairs=rows.written,
        held_out_pairs=held_out,
        prompts=len(prompts[True]) + len(prompts[False]),
        held_out_prompts=len(prompts[True]),
        left_out=dict(rows.left_out),
        left_out_judges=sources.left_out,
        sources=sources.names(),
        compared=len(rows.ballots),
        contested=rows.contested,
        agreement=rows.mean_agreement,
    )


def _all_pairs(
    sources: Sources, session: Session, given: PreferencesChoice, rows: PairRows
) -> Iterator[PreferenceVote]:
    """Every pair that may become a row, and those that are unfit to, which are counted."""
    if given.votes == "majority":
        yield from by_majority(rows.ballots)
        every = sources.pairs(session, given.criterion, given.pairs, rows.order)
        yield from (pair for pair in every if pair.unfit is not None)
        return
    yield from sources.pairs(session, given.criterion, given.pairs, rows.order)


def _votes(
    sources: Sources, session: Session, given: PreferencesChoice, order: dict[uuid.UUID, int]
) -> Iterator[PreferenceVote]:
    """What agreement is counted over: every two answers that anyone compared; with the majority of best against worst
    only what was best and worst to someone."""
    pairs: Choice = "best_worst" if (given.votes, given.pairs) == ("majority", "best_worst") else "votes"
    return sources.pairs(session, given.criterion, pairs, order)
