"""Models as training sees them: one nn.Module whose forward returns just what the loss needs.

Wrapping matters: DDP and DeepSpeed synchronise around this forward, so the loss must not run the model outside of it.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from steerboard_workers.alignment.segments import Segments

# Logits of one chunk, in elements. More than one chunk is recomputed in the backward pass, so that the logits of a
# long batch under a large vocabulary never exist at once. But each chunk reads the head's weights again and adds a
# gradient of their size, so it should have some hundred rows.
CHUNK_ELEMENTS = 1 << 26
CPU_CHUNK_ELEMENTS = 1 << 28
# Logits that stay in a CPU's cache between two passes over them. A GPU takes a chunk at once.
BLOCK_ELEMENTS = 1 << 19
# What a forward returns instead, to see whether two ways to compute the same agree: the hidden states (N, hidden), or
# log-probs by the model's own full forward. Asked of the wrapped module, since ZeRO-3 brings weights in from outside.
Probe = Literal["hidden", "whole_head"]


class PolicyModule(nn.Module):
    """A causal language model that runs its LM head on supervised tokens only.

    forward returns (log_probs (N,) float32, correct (N,) bool): log pi of each label, and whether it was the likeliest.
    `entropies`: where gradients are kept, third the entropies (N,) float32 of the distributions that they are of.
    `whole_head`: read logits from the model's own full forward, for architectures that do more to them than one
    linear layer (soft caps, scales). `own_attention`: the model's implementation before batching chose another.
    `temperature`: log-probs are of softmax(logits / temperature); a forward may ask for another one.
    """

    def __init__(self, model: Any, whole_head: bool = False) -> None:
        super().__init__()
        self.model = model
        self.whole_head = whole_head
        self.temperature = 1.0
        self.entropies = False
        self.own_attention: str = model.config._attn_implementation
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
    ) -> tuple[Tensor, ...] | Tensor:
        inputs = model_inputs(input_ids, position_ids, attention_mask, segments)
        if probe == "hidden":
            return read_hidden(self.model, inputs, read)
        if self.whole_head or probe == "whole_head":
            logits = self.model(**inputs).logits
            return self._log_probs(logits.flatten(0, 1).index_select(0, read), labels, temperature)
        hidden = read_hidden(self.model, inputs, read)
        head = self.model.get_output_embeddings()
        at_once = CPU_CHUNK_ELEMENTS if hidden.device.type == "cpu" else CHUNK_ELEMENTS
        rows = max(1, at_once // self.vocabulary)
        if len(read) <= rows:
            return self._head_log_probs(head, hidden, labels, temperature)
        parts = [
            checkpoint(self._head_log_probs, head, hidden[at:end], labels[at:end], temperature, use_reentrant=False)
            for at, end in ((at, at + rows) for at in range(0, len(read), rows))
        ]
        return tuple(torch.cat(values) for values in zip(*parts, strict=True))

    def _head_log_probs(
        self, head: nn.Module, hidden: Tensor, labels: Tensor, temperature: float | None
    ) -> tuple[Tensor, ...]:
        return self._log_probs(head(hidden), labels, temperature)

    def _log_probs(self, logits: Tensor, labels: Tensor, temperature: float | None = None) -> tuple[Tensor, ...]:
        divisor = self.temperature if temperature is None else temperature
        scaled = logits if divisor == 1.0 else logits.float() / divisor  # bf16 would round once more
        found = label_log_probs(scaled, labels)
        return (*found, entropies(scaled)) if self.entropies and torch.is_grad_enabled() else found


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
    ) -> Tensor:
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
    found = False
    for part in model.modules():
        names = ["p"] if isinstance(part, nn.Dropout) else []
        names += [name for name, value in vars(part).items() if "drop" in name and isinstance(value, float)]
        for name in names:
            found |= getattr(part, name) > 0
            setattr(part, name, 0.0)
    return found


def read_hidden(model: Any, inputs: dict[str, Any], read: Tensor) -> Tensor:
    """Last hidden states (N, hidden) at the flat places `read`."""
    hidden: Tensor = body_of(model)(**inputs).last_hidden_state
    return hidden.flatten(0, 1).index_select(0, read)


def body_of(model: Any) -> Any:
    """The layers below the head; `model` itself where they are unknown. Llama 4's are not called what its
    `base_model_prefix` claims."""
    return getattr(model, "model", model) if model.base_model is model else model.base_model


def label_log_probs(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """log softmax in float32 at each label, and whether no other token is likelier. logits (N, V), labels (N,)."""
    log_probs, correct = _LabelLogProbs.apply(logits, labels)  # type: ignore[no-untyped-call]
    return log_probs, correct


class _LabelLogProbs(torch.autograd.Function):
    """Reads the logits twice, a few rows at a time, and keeps no (N, V) tensor besides them and their gradient.

    torch's cross_entropy makes a float32 copy of bf16 logits, a log softmax and its gradient, each as large as the
    logits: a tenth of an SFT step on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        normalisers = torch.empty(len(logits), dtype=torch.float32, device=logits.device)
        picked = logits.gather(1, labels[:, None]).squeeze(1).float()
        best = logits.amax(-1).float()
        for rows in _row_blocks(logits):
            normalisers[rows] = logits[rows].float().logsumexp(-1)
        ctx.save_for_backward(logits, labels, normalisers)
        correct = picked >= best
        ctx.mark_non_differentiable(correct)
        return picked - normalisers, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor, None]:
        """d log pi(y) / d logit_v = [v = y] - pi(v)."""
        logits, labels, normalisers = ctx.saved_tensors
        out = torch.empty_like(logits)
        for rows in _row_blocks(logits):
            block = out[rows] if out.dtype is torch.float32 else torch.empty_like(out[rows], dtype=torch.float32)
            torch.sub(logits[rows], normalisers[rows, None], out=block).exp_().mul_(-gradient[rows, None])
            block.scatter_add_(1, labels[rows, None], gradient[rows, None])
            if block.dtype is not out.dtype:
                out[rows] = block
        return out, None


def entropies(logits: Tensor) -> Tensor:
    """-sum_v pi(v) log pi(v) in float32 of each row of logits (N, V)."""
    found: Tensor = _Entropies.apply(logits)  # type: ignore[no-untyped-call]
    return found


class _Entropies(torch.autograd.Function):
    """By rows, as `_LabelLogProbs`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        found = torch.empty(len(logits), dtype=torch.float32, device=logits.device)
        for rows in _row_blocks(logits):
            found[rows] = torch.special.entr(logits[rows].float().softmax(-1)).sum(-1)
        ctx.save_for_backward(logits, found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """d H / d logit_v = -pi(v) (log pi(v) + H)."""
        logits, found = ctx.saved_tensors
        out = torch.empty_like(logits)
        for rows in _row_blocks(logits):
            chances = logits[rows].float().softmax(-1)
            out[rows] = (torch.special.entr(chances) - chances * found[rows, None]) * gradient[rows, None]
        return out


def _row_blocks(logits: Tensor) -> list[slice]:
    rows = max(1, BLOCK_ELEMENTS // logits.shape[1]) if logits.device.type == "cpu" else max(1, len(logits))
    return [slice(at, at + rows) for at in range(0, len(logits), rows)]


def model_inputs(
    input_ids: Tensor, position_ids: Tensor | None, attention_mask: Tensor | None, segments: Segments | None
) -> dict[str, Any]:
    # use_cache=False also makes transformers tell packed sequences apart by their position ids.
    inputs = {
        "input_ids": input_ids,
        "position_ids": position_ids,
        "attention_mask": attention_mask,
        "use_cache": False,
    }
    return inputs if segments is None else {**inputs, "segments": segments}
