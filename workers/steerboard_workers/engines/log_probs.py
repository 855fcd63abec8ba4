"""Log-probs of answers as they were drawn, under any model of the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from steerboard_workers.alignment.modules import label_log_probs


class Drawn(NamedTuple):
    """A prompt's token ids, and those that were drawn behind it, with the end token where one was. Neither is empty."""

    prompt: list[int]
    answer: list[int]

    @property
    def tokens(self) -> int:
        return len(self.prompt) + len(self.answer)


@torch.inference_mode()
def answer_log_probs(
    model: Any, device: torch.device, pad: int, drawn: Sequence[Drawn], temperature: float
) -> list[float]:
    """Of each, the sum over its answer's tokens of log softmax(logits / temperature), in nats; in one forward pass.

    `model` is a causal LM in eval mode on `device`. Padding is on the right, where a causal model does not see it.
    """
    width = max(one.tokens for one in drawn)
    ids = torch.tensor([one.prompt + one.answer + [pad] * (width - one.tokens) for one in drawn], device=device)
    # Each token is predicted at the place before it.
    first = min(len(one.prompt) for one in drawn) - 1
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=width - first).logits
    rows = torch.cat([torch.full((len(one.answer),), row) for row, one in enumerate(drawn)])
    at = torch.cat([torch.arange(len(one.answer)) + len(one.prompt) - 1 - first for one in drawn])
    labels = torch.tensor([token for one in drawn for token in one.answer], device=device)
    found, _ = label_log_probs(logits[rows.to(device), at.to(device)].float() / temperature, labels)
    parts = torch.tensor_split(found, torch.tensor([len(one.answer) for one in drawn]).cumsum(0)[:-1])
    return [float(part.double().sum()) for part in parts]
