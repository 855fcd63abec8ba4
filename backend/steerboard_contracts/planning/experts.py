"""The shape of a mixture's experts: what all of them weigh, and what the active ones leave for the backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_FP32 = 4
# Router logits, probabilities and their gradient.
_ROUTER_ROWS = 3


class ExpertShape(BaseModel):
    """`experts` a mixture layer, of gated products of width `intermediate`; `active` for each token. `shared`: width of
    what every token passes in addition. `layers`: how many are mixtures."""

    experts: int
    active: int
    intermediate: int
    shared: int
    layers: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ExpertShape | None:
        """The shape by a decoder's `config.json`, under the names of the families of transformers; None without
        experts. Raises `KeyError`, `TypeError` or `ValueError` where it is no such config."""
        experts = _first(config, ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"))
        if experts < 2:
            return None
        width = _first(config, ("moe_intermediate_size", "intermediate_size"))
        shared = _first(config, ("shared_expert_intermediate_size", "shared_intermediate_size"))
        shared = shared or width * _first(config, ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"))
        return cls(
            experts=experts,
            active=_first(config, ("num_experts_per_tok", "num_experts_per_token", "moe_k")) or 1,
            intermediate=width,
            shared=shared,
            layers=_mixture_layers(config),
        )

    def matrices(self, hidden: int) -> int:
        """The elements of one layer's experts."""
        return self.experts * 3 * hidden * self.intermediate

    def parameters(self, hidden: int) -> int:
        """The elements of all mixture layers, with their routers and shared experts."""
        return self.layers * (self.matrices(hidden) + self.experts * hidden + 3 * hidden * self.shared)

    def sides(self, hidden: int, *, each: bool) -> int:
        """Rows and columns of the matrices that adapters are on: shared experts, and with `each` all others."""
        shared = 3 * (hidden + self.shared) if self.shared else 0
        return self.layers * (shared + (self.experts * (2 * hidden + 3 * self.intermediate) if each else 0))

    def saved(self, hidden: int, width: int, shared_width: int) -> int:
        """Bytes that autograd saves of a token in one mixture layer. `width`: bytes of an element of what experts
        compute; `shared_width`: of a shared expert's."""
        routed = self.active * (2 * hidden + 4 * self.intermediate) * width
        return routed + _ROUTER_ROWS * self.experts * _FP32 + 4 * self.shared * shared_width


def _mixture_layers(config: Mapping[str, Any]) -> int:
    layers = int(config["num_hidden_layers"])
    first, step = _first(config, ("first_k_dense_replace",)), _first(config, ("decoder_sparse_step",)) or 1
    dense = set(config.get("mlp_only_layers") or ()) | set(range(first))
    return sum(1 for layer in range(layers) if layer not in dense and (layer + 1) % step == 0)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((int(config[name]) for name in names if config.get(name)), 0)
