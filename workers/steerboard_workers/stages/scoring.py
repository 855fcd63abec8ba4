"""Scoring texts by a reward model; the score stage and the evaluation call the same code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from steerboard_contracts.errors import BadRow
from steerboard_workers.alignment.modules import RewardModule
from steerboard_workers.alignment.templates import Prompt
from steerboard_workers.stages.loading import RewardModel

# On a CPU larger batches fall out of its caches and run several times slower. Scores do not depend on the batch.
CPU_BATCH_TOKENS = 2048


class Scorable(NamedTuple):
    """One prompt with one response."""

    prompt: Prompt
    response: str


def score_texts(
    reward_model: RewardModel,
    samples: Sequence[Scorable],
    batch_tokens: int,
    on_progress: Callable[[int], None] | None = None,
) -> list[float]:
    """One raw reward for each sample, in their order. `on_progress` gets the number done."""
    scores = [0.0] * len(samples)
    done = 0
    for places, values in score_batches(reward_model, samples, batch_tokens):
        for place, value in zip(places, values, strict=True):
            scores[place] = value
        done += len(places)
        if on_progress:
            on_progress(done)
    return scores


@torch.inference_mode()
def score_batches(
    reward_model: RewardModel, samples: Sequence[Scorable], batch_tokens: int
) -> Iterator[tuple[list[int], list[float]]]:
    """(places, rewards) of one batch at a time, longest samples first.

    A batch holds sequences of similar length whose padded size is at most `batch_tokens`. Padding stands on the
    right of causal models and the score is read at each sequence's last real token, so batch mates change nothing.
    Raises `BadRow` for a sample whose window leaves no room, since each row must get exactly one score.
    """
    rendered = reward_model.renderer.render_many([s.prompt for s in samples], [s.response for s in samples])
    lengths = []
    for place, item in enumerate(rendered):
        if item is None:
            raise BadRow(
                f"sample {place} cannot be scored: the model's window of {reward_model.renderer.max_length} tokens "
                "leaves no room for a response"
            )
        lengths.append(len(item.ids))
    if reward_model.device.type == "cpu":
        batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
    module = RewardModule(reward_model.model)
    pad = int(reward_model.tokenizer.pad_token_id)
    for places in batches_by_tokens(lengths, batch_tokens):
        width = lengths[places[0]]
        ids = torch.full((len(places), width), pad, dtype=torch.int64)
        for i, place in enumerate(places):
            item = rendered[place]
            assert item is not None
            ids[i, : lengths[place]] = torch.tensor(item.ids)
        read = torch.tensor([i * width + lengths[place] - 1 for i, place in enumerate(places)])
        rewards = module(ids.to(reward_model.device), read.to(reward_model.device))
        yield places, rewards.tolist()


def batches_by_tokens(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Places by falling length, cut so that count x longest stays within the budget (one place at least)."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
