"""Who answered what: counts, lengths, and where the prompts were seen before."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats
from steerboard_contracts.report.sections.entrants import Contamination, EntrantRow, LengthRatio, SeenPrompt
from steerboard_statistics.bootstrap import divide, mean_interval, ratio_interval


def mean_lengths(data: EvaluationData) -> Floats:
    """Characters of all turns, the samples of a prompt averaged: (prompts, entrants), NaN where there is no answer."""
    answers = data.answers
    total, number = np.zeros(data.shape), np.zeros(data.shape)
    np.add.at(total, (answers.row, answers.entrant), answers.characters.sum(axis=1))
    np.add.at(number, (answers.row, answers.entrant), 1)
    return divide(total, number)


def entrant_rows(data: EvaluationData, means: Floats) -> list[EntrantRow]:
    """`means` as from `mean_lengths`."""
    answers = data.answers
    made = []
    for column, entrant in enumerate(data.entrants):
        own = answers.entrant == column
        truncated = answers.truncated[own]
        truncated = truncated[np.isfinite(truncated)]
        made.append(
            EntrantRow(
                name=entrant.name,
                source=entrant.source,
                method=entrant.method,
                score=entrant.score,
                guidance=entrant.guidance,
                samples=entrant.samples,
                best_of=entrant.best_of,
                chosen_by=entrant.chosen_by,
                family=entrant.family,
                model=entrant.model,
                content_hash=entrant.content_hash,
                responses=int(own.sum()),
                missing=max(0, len(data.prompts) * entrant.samples - int(own.sum())),
                length=mean_interval(means[:, column], seed=data.seed),
                truncated=float(truncated.mean()) if len(truncated) else None,
                condition_gain=(gain := entrant.training.condition_gain),
                condition_gain_step=entrant.training.step if gain is not None else None,
                kept=entrant.training.kept,
                trained_on=sorted(entrant.trained_on),
                origin_known=entrant.known_origin,
            )
        )
    return made


def length_ratios(data: EvaluationData, means: Floats) -> list[LengthRatio]:
    """The length ratio of every two entrants, both ways round: the mean length of one over that of the other."""
    made = []
    for first, other in combinations(range(len(data.entrants)), 2):
        for a, b in ((first, other), (other, first)):
            ratio = ratio_interval(means[:, a], means[:, b], seed=data.seed)
            made.append(LengthRatio(a=data.entrants[a].name, b=data.entrants[b].name, ratio=ratio))
    return made


def contamination(data: EvaluationData) -> Contamination:
    seen = [
        SeenPrompt(
            position=prompt.position,
            question_id=prompt.question_id,
            match=prompt.seen["match"],
            dataset=str(prompt.seen["dataset"]),
            row=int(prompt.seen["row"]),
            overlap=float(prompt.seen["overlap"]),
        )
        for prompt in data.prompts
        if prompt.seen
    ]
    return Contamination(
        checked=data.checked,
        prompts=len(data.prompts),
        exact=sum(prompt.match == "exact" for prompt in seen),
        near=sum(prompt.match == "near" for prompt in seen),
        seen=seen,
    )
