"""Whether answers are still fluent: their perplexity under one model, and how many are empty or repeat."""

from __future__ import annotations

import numpy as np

from steerboard.evaluation.report.data import EvaluationData, Floats
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.fluency import Fluency, FluencyRow
from steerboard_statistics.bootstrap import estimate, ratio_interval


def fluency(data: EvaluationData) -> Fluency:
    log_probs, tokens = _by_prompt(data, data.answers.log_prob), _by_prompt(data, data.answers.log_prob_tokens)
    rows = [_row(data, column, log_probs[:, column], tokens[:, column]) for column in range(len(data.entrants))]
    return Fluency(perplexity_by=data.kl_to.name if data.kl_to is not None else None, entrants=rows)


def _row(data: EvaluationData, column: int, log_probs: Floats, tokens: Floats) -> FluencyRow:
    entrant, texts, own = data.entrants[column], data.texts[column], data.answers.entrant == column
    perplexity = _exp(ratio_interval(-log_probs, tokens, seed=data.seed))

    def share(count: int) -> float | None:
        return count / texts.answers if texts.answers else None

    return FluencyRow(
        entrant=entrant.name,
        answers=texts.answers,
        perplexity=perplexity,
        why=_why(data, column) if perplexity.value is None else None,
        distinct_1=texts.distinct_1 if texts.answers else None,
        distinct_2=texts.distinct_2 if texts.answers else None,
        empty=share(texts.empty),
        repeated=share(texts.repeated),
        cut=_mean(data.answers.truncated[own]),
        tokens=_mean(data.answers.tokens[own]),
    )


def _why(data: EvaluationData, column: int) -> str | None:
    """The reason of an entrant without perplexity; None where the evaluation names no model."""
    if data.kl_to is None:
        return None
    if data.entrants[column].source != "model":
        return "the tokens of its answers are not known here"
    if not (data.answers.entrant == column).any():
        return "its answers are not there yet"
    return (
        f"{data.kl_to.name} did not read its answers: it has other tokens or a smaller window, was deleted, or an "
        "earlier version made them; their run's log has more"
    )


def _by_prompt(data: EvaluationData, values: Floats) -> Floats:
    """(prompts, entrants): the sum over the samples of a prompt, NaN where no answer was read. Prompts are what the
    interval is over, since the samples of one are alike."""
    answers = data.answers
    there = np.isfinite(answers.log_prob) & (answers.log_prob_tokens > 0)
    total, number = np.zeros(data.shape), np.zeros(data.shape)
    np.add.at(total, (answers.row[there], answers.entrant[there]), values[there])
    np.add.at(number, (answers.row[there], answers.entrant[there]), 1)
    return np.where(number > 0, total, np.nan)


def _exp(log_estimate: Estimate) -> Estimate:
    """exp of the nats a token; None where that is beyond any number."""
    with np.errstate(over="ignore"):
        value, low, high = (
            None if bound is None else float(np.exp(bound))
            for bound in (log_estimate.value, log_estimate.low, log_estimate.high)
        )
    return estimate(value, low, high, log_estimate.n)


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
