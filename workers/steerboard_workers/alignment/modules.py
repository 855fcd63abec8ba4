"""Models as training sees them: one nn.Module whose forward returns just what the loss needs.

Wrapping matters: DDP and DeepSpeed synchronise around this forward, so the loss must not run the model outside of it.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from steerboard_workers.alignment.divergence import Comparison, compare, comparison_rows
from steerboard_workers.alignment.head import chunk_rows, chunks, is_plain, read_head, read_logits
from steerboard_workers.alignment.replay import Replaying
from steerboard_workers.alignment.segments import Segments

# What a forward returns instead: to see whether two ways to compute the same agree, the hidden states (N, hidden), or
# log-probs by the model's own full forward; or `states`, of which `PolicyModule.logits` makes logits. Asked of the
# wrapped module, since ZeRO-3 gathers weights from outside.
Probe = Literal["hidden", "whole_head", "states"]


class PolicyModule(nn.Module):
    """A causal language model that runs its LM head on supervised tokens only.

    forward returns (log_probs (N,) float32, correct (N,) bool): log pi of each label, and whether it was the likeliest.
    `entropies`: where gradients are kept, third the entropies (N,) float32 of the distributions that they are of.
    `whole_head`: read logits from the model's own full forward, for architectures that do more to them than one
    linear layer (soft caps, scales). `own_attention`: the model's implementation before batching chose another.
    `temperature`: log-probs are of softmax(logits / temperature); a forward may ask for another one.
    `comparison`: returned is how the distributions differ from a frozen model's, log-probs and `correct` first.
    `routes` (L, B*T, k): experts that `routers` send tokens to, in the backward pass of what is computed again, too.
    Without `routers`, and without routes, they choose themselves.
    """

    def __init__(self, model: Any, whole_head: bool = False) -> None:
        super().__init__()
        self.model = model
        self.whole_head = whole_head
        self.temperature = 1.0
        self.entropies = False
        self.own_attention: str = model.config._attn_implementation
        self.routers: Replaying | None = None
        self.vocabulary = int(model.config.get_text_config().vocab_size)

    def forward(
        self,
        input_ids: Tensor,
        read: Tensor,
        labels: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        segments: Segments | None = None,
        probe: Probe | None = None,
        temperature: float | None = None,
        comparison: Comparison | None = None,
        routes: Tensor | None = None,
    ) -> tuple[Tensor, ...] | Tensor:
        if self.routers is not None:
            self.routers.replay(routes)
        inputs = model_inputs(input_ids, position_ids, attention_mask, segments)
        if probe == "hidden":
            return read_hidden(self.model, inputs, read)
        if probe == "states":
            return self._states(inputs, read)
        entropic = self.entropies and torch.is_grad_enabled()
        divisor = self.temperature if temperature is None else temperature
        if comparison is not None:
            states = self._states(inputs, read)
            rows = chunks(len(read), comparison_rows(self.vocabulary), self._spread, states.device)
            return compare(self.logits, states, labels, comparison, divisor, rows)
        if self.whole_head or probe == "whole_head":
            logits = self.model(**inputs).logits.flatten(0, 1).index_select(0, read)
            return read_logits(logits, labels, divisor, entropic)
        hidden = read_hidden(self.model, inputs, read)
        head = self.model.get_output_embeddings()
        if is_plain(head):
            return read_head(head, hidden, labels, divisor, entropic)

        def part(some: Tensor, theirs: Tensor) -> tuple[Tensor, ...]:
            return read_logits(head(some), theirs, divisor, entropic)

        rows = chunks(len(read), chunk_rows(self.vocabulary, hidden.device), self._spread, hidden.device)
        if len(rows) == 1:
            return part(hidden, labels)
        parts = [checkpoint(part, hidden[some], labels[some], use_reentrant=False) for some in rows]
        return tuple(torch.cat(values) for values in zip(*parts, strict=True))

    @property
    def _spread(self) -> bool:
        """Whether each process holds a part of the weights alone (ZeRO-3)."""
        return hasattr(next(self.model.parameters()), "ds_id")

    def logits(self, states: Tensor) -> Tensor:
        """(n, V) of some rows of what the probe `states` gave."""
        logits: Tensor = states if self.whole_head else self.model.get_output_embeddings()(states)
        return logits

    def _states(self, inputs: dict[str, Any], read: Tensor) -> Tensor:
        """(N, hidden) at the places to read; where more than one linear layer makes logits of these, logits (N, V)."""
        if not self.whole_head:
            return read_hidden(self.model, inputs, read)
        logits: Tensor = self.model(**inputs).logits
        return logits.flatten(0, 1).index_select(0, read)


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
        segments: Segments | None = None,
        probe: Probe | None = None,
        routes: Tensor | None = None,
    ) -> Tensor:
        """`routes` are those of a policy that learns in the same steps, and no concern of this model."""
        hidden = read_hidden(self.model, model_inputs(input_ids, position_ids, attention_mask, segments), read)
        if probe == "hidden":
            return hidden
        rewards: Tensor = self.model.score(hidden).squeeze(-1).float()
        return rewards


class JointModule(nn.Module):
    """Several models that learn in the same steps. forward returns what each gives for the same places, by its name;
    `MAIN` is the one that training is for, which probes are asked of unless they name another `part`."""

    MAIN = "model"

    def __init__(self, parts: dict[str, PolicyModule | RewardModule]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)

    @property
    def model(self) -> Any:
        return self.parts[self.MAIN].model

    def forward(self, *, part: str | None = None, probe: Probe | None = None, **inputs: Any) -> Any:
        if probe is not None or part is not None:
            return self.parts[part or self.MAIN](**inputs, probe=probe)
        return {name: module(**inputs) for name, module in self.parts.items()}


def without_dropout(model: nn.Module) -> bool:
    """Turn it off in training, too; the model's config stays as it is. Returns whether there was any.

    Architectures have it as modules, or as numbers that go to a function: `attention_dropout` of Llama, `resid_pdrop`
    of DBRX, `layerdrop` of OPT.
    """
    drops = False
    for part in model.modules():
        names = ["p"] if isinstance(part, nn.Dropout) else []
        names += [name for name, value in vars(part).items() if "drop" in name and isinstance(value, float)]
        for name in names:
            drops |= getattr(part, name) > 0
            setattr(part, name, 0.0)
    return drops


def read_hidden(model: Any, inputs: dict[str, Any], read: Tensor) -> Tensor:
    """Last hidden states (N, hidden) at the flat places `read`."""
    hidden: Tensor = body_of(model)(**inputs).last_hidden_state
    return hidden.flatten(0, 1).index_select(0, read)


def body_of(model: Any) -> Any:
    """The layers below the head; `model` itself where they are unknown. Llama 4's are not called what its
    `base_model_prefix` claims."""
    return getattr(model, "model", model) if model.base_model is model else model.base_model


def model_inputs(
    input_ids: Tensor, position_ids: Tensor | None, attention_mask: Tensor | None, segments: Segments | None
) -> dict[str, Any]:
    """What a model of transformers is called with: input_ids and position_ids (B, T), attention_mask (B, 1, T, T)."""
    # use_cache=False also makes transformers tell packed sequences apart by their position ids.
    inputs = {
        "input_ids": input_ids,
        "position_ids": position_ids,
        "attention_mask": attention_mask,
        "use_cache": False,
    }
    return inputs if segments is None else {**inputs, "segments": segments}
