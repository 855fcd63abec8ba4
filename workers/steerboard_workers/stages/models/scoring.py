"""Scoring texts by a reward model; the score stage and the evaluation call the same code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from steerboard_contracts.errors import BadRow
from steerboard_contracts.watching.ledger import PhaseTime
from steerboard_workers.alignment.rendering.templates import Prompt, Response
from steerboard_workers.engines.rewards import RewardEngine, TransformersRewards
from steerboard_workers.stages.models.model_io import RewardModel


class Scorable(NamedTuple):
    """One prompt with one response."""

    prompt: Prompt
    response: Response


def score_texts(
    rewards: RewardEngine,
    samples: Sequence[Scorable],
    batch_tokens: int,
    on_progress: Callable[[int], None] | None = None,
    phase: PhaseTime | None = None,
) -> list[float]:
    """One raw reward for each sample, in their order. `on_progress` gets the number done, `phase` the tokens read."""
    scores = [0.0] * len(samples)
    done = 0
    for places, values in score_batches(rewards, samples, batch_tokens, phase):
        for place, value in zip(places, values, strict=True):
            scores[place] = value
        done += len(places)
        if on_progress:
            on_progress(done)
    return scores


def reward_engine(loaded: RewardModel, log: Callable[[str], None] = lambda line: None) -> TransformersRewards:
    """A loaded reward model as an engine."""
    return TransformersRewards(loaded.model, loaded.renderer, loaded.device, log)


def score_batches(
    rewards: RewardEngine, samples: Sequence[Scorable], batch_tokens: int, phase: PhaseTime | None = None
) -> Iterator[tuple[list[int], list[float]]]:
    """(places, rewards) of some samples at a time, as the engine gives them. Adds the tokens read to `phase`.

    Raises `BadRow` for a sample whose window leaves no room, since each row must get exactly one score.
    """
    rendered = rewards.renderer.render_many([s.prompt for s in samples], [s.response for s in samples])
    sequences = []
    for place, item in enumerate(rendered):
        if item is None:
            raise BadRow(
                f"sample {place} cannot be scored: the model's window of {rewards.renderer.max_length} tokens "
                "leaves no room for a response"
            )
        sequences.append(item)
    for places, values in rewards.score(sequences, batch_tokens):
        if phase is not None:
            phase.tokens += sum(len(sequences[place].ids) for place in places)
        yield places, values
