"""How far the entrants are from one model, and how far the best of n of its own answers may be."""

from __future__ import annotations

import numpy as np

from steerboard.evaluation.divergence import no_estimate
from steerboard.evaluation.report.data import EntrantFacts, EvaluationData, Floats
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.frontier import BestOfNFrontier, Divergence, Frontier
from steerboard_contracts.report.sections.rewards import RewardReport
from steerboard_statistics.best_of_k import kl_bound
from steerboard_statistics.bootstrap import divide, mean_interval


def frontier(data: EvaluationData, rewards: list[RewardReport]) -> Frontier | None:
    """Returns None for an evaluation that names no model to compare with."""
    if data.kl_to is None:
        return None
    ratios = _mean_log_ratios(data)
    same = [row for row in data.entrants if _is(row, data.kl_to.content_hash) and row.best_of is None]
    itself = {row.name: row for row in same}
    curves = [
        BestOfNFrontier(
            reward_model=report.reward_model,
            entrant=curve.entrant,
            n=curve.n,
            kl=[kl_bound(n) for n in curve.n],
            reward=curve.reward,
            alike=[row.name for row in same if row.samples == 1 and row.decoding == itself[curve.entrant].decoding],
        )
        for report in rewards
        for curve in report.best_of_n
        if curve.entrant in itself
    ]
    entrants = [_divergence(data, column, ratios[:, column], data.kl_to.content_hash) for column in _columns(data)]
    return Frontier(kl_to=data.kl_to.name, entrants=entrants, best_of_n=curves)


def _columns(data: EvaluationData) -> range:
    return range(len(data.entrants))


def _is(entrant: EntrantFacts, content_hash: str) -> bool:
    return entrant.content_hash == content_hash and entrant.score is None


def _divergence(data: EvaluationData, column: int, ratios: Floats, content_hash: str) -> Divergence:
    entrant = data.entrants[column]
    if _is(entrant, content_hash):
        exact = 0.0 if entrant.best_of is None else kl_bound(entrant.best_of)
        kl = Estimate(value=exact, n=len(data.prompts))
        return Divergence(entrant=entrant.name, kl=kl, kind="same" if entrant.best_of is None else "bound")
    why = no_estimate(entrant.source, entrant.decoding, entrant.best_of)
    kl = mean_interval(ratios, seed=data.seed)
    if why is None and kl.value is None:
        why = "its answers are not there yet, or were made before the evaluation named the model"
    return Divergence(entrant=entrant.name, kl=kl, kind="estimate", why=why)


def _mean_log_ratios(data: EvaluationData) -> Floats:
    """(prompts, entrants): the mean over the samples of a prompt, NaN where there is none. Prompts are what the
    interval is over, since the samples of one are alike."""
    answers = data.answers
    there = np.isfinite(answers.log_ratio)
    total, number = np.zeros(data.shape), np.zeros(data.shape)
    np.add.at(total, (answers.row[there], answers.entrant[there]), answers.log_ratio[there])
    np.add.at(number, (answers.row[there], answers.entrant[there]), 1)
    return divide(total, number)
