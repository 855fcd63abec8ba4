"""Models as training sees them: one nn.Module whose forward returns just what the loss needs.

Wrapping matters: DDP and DeepSpeed synchronise around this forward, so nothing of the loss may run the model beside it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# Logits of one chunk, in elements: 64 MiB in float32. More than one chunk is recomputed in the backward pass, so that
# the logits of a long batch under a large vocabulary never exist at once.
CHUNK_ELEMENTS = 1 << 24


class PolicyModule(nn.Module):
    """A causal language model that runs its LM head on supervised tokens only.

    forward returns (log_probs (N,) float32, correct (N,) bool): log pi of each label, and whether it was the likeliest.
    `whole_head`: read logits from the model's own full forward, for architectures that do more to them than one
    linear layer (soft caps, scales).
    """

    def __init__(self, model: Any, whole_head: bool = False) -> None:
        super().__init__()
        self.model = model
        self.whole_head = whole_head

    def forward(
        self,
        input_ids: Tensor,
        read: Tensor,
        labels: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        inputs = _inputs(input_ids, position_ids, attention_mask)
        if self.whole_head:
            logits = self.model(**inputs).logits
            return label_log_probs(logits.flatten(0, 1).index_select(0, read), labels)
        hidden = read_hidden(self.model, inputs, read)
        head = self.model.get_output_embeddings()
        rows = max(1, CHUNK_ELEMENTS // head.weight.shape[0])
        if len(read) <= rows:
            return label_log_probs(head(hidden), labels)
        parts = [
            checkpoint(_head_log_probs, head, hidden[at : at + rows], labels[at : at + rows], use_reentrant=False)
            for at in range(0, len(read), rows)
        ]
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])


class RewardModule(nn.Module):
    """A sequence classifier with one label. forward returns rewards (N,) float32 at the places to read."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor,
        read: Tensor,
        labels: Tensor | None = None,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        hidden = read_hidden(self.model, _inputs(input_ids, position_ids, attention_mask), read)
        rewards: Tensor = self.model.score(hidden).squeeze(-1).float()
        return rewards


def read_hidden(model: Any, inputs: dict[str, Any], read: Tensor) -> Tensor:
    """Last hidden states (N, hidden) at the flat places `read`."""
    hidden: Tensor = model.base_model(**inputs).last_hidden_state
    return hidden.flatten(0, 1).index_select(0, read)


def label_log_probs(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """log softmax in float32 at each label, and whether no other token is likelier. logits (N, V), labels (N,)."""
    logits = logits.float()
    log_probs = -F.cross_entropy(logits, labels, reduction="none")
    with torch.no_grad():
        best = logits.amax(-1)
        correct = logits.gather(1, labels[:, None]).squeeze(1) >= best
    return log_probs, correct


def _head_log_probs(head: nn.Module, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    return label_log_probs(head(hidden), labels)


def _inputs(input_ids: Tensor, position_ids: Tensor | None, attention_mask: Tensor | None) -> dict[str, Any]:
    # use_cache=False also makes transformers tell packed sequences apart by their position ids.
    return {
        "input_ids": input_ids,
        "position_ids": position_ids,
        "attention_mask": attention_mask,
        "use_cache": False,
    }
