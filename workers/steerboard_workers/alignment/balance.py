"""The load-balancing loss of a mixture of experts, and figures of how evenly its experts are used.

The loss is that of transformers' `load_balancing_loss_func`: Eq. 4 to 6 of arXiv 2101.03961 for k experts a token, with
all layers pooled. For E experts, over all T tokens and L layers, E sum_e f_e P_e: f_e are the assignments to expert e
per token, P_e is the mean probability that routers gave it. It is k where both are even, and at most E.

f_e has no gradient. Where it is of the whole global batch, the loss is linear in what a pass computes, and does not
depend on how the batch is cut (arXiv 2501.11873).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from steerboard_workers.alignment.replay import Routes


def assigned(routes: Sequence[Routes], weights: Tensor) -> Tensor:
    """Assignments (E,) float64 of the k experts that are likeliest by each layer's logits, over all layers. weights
    (T,): how often a position counts, which is 0 for padding."""
    of_layers = []
    for layer in routes:
        likeliest = layer.logits.detach().topk(layer.chosen.shape[1], dim=-1).indices
        of_layers.append(_counts(layer.logits, likeliest, weights))
    return torch.stack(of_layers).sum(0)


def probabilities(routes: Sequence[Routes], weights: Tensor) -> Tensor:
    """Sums (E,) float32 of the probability of each expert over all positions and layers, with gradient."""
    # No product of matrices: autocast would round it to bf16.
    parts = [(weights.float()[:, None] * layer.logits.float().softmax(-1)).sum(0) for layer in routes]
    return torch.stack(parts).sum(0)


def balance_loss(assignments: Tensor, sums: Tensor, rows: float) -> Tensor:
    """E sum_e f_e P_e, a scalar, of assignments (E,) and of sums (E,) of probabilities over `rows` tokens of layers."""
    return len(sums) * ((assignments / rows).to(sums.dtype) * (sums / rows)).sum()


def loads(routes: Sequence[Routes], weights: Tensor) -> Tensor:
    """Assignments (L, E) float64 to the experts that each layer chose."""
    return torch.stack([_counts(layer.logits, layer.chosen, weights) for layer in routes])


def load_figures(loads: Tensor) -> dict[str, float]:
    """Figures of assignments (L, E). `expert_load_max`: those of the busiest expert of any layer against an expert's
    mean. `experts_used`: exp(entropy of the loads) / E, which is 1 where all are used alike and n / E where n are used
    alike and the others never; the mean of the layers. `experts_used_min`: that of the worst layer."""
    shares = loads / loads.sum(1, keepdim=True)
    used = torch.special.entr(shares).sum(1).exp() / loads.shape[1]
    return {
        "expert_load_max": float(shares.max()) * loads.shape[1],
        "experts_used": math.fsum(used.tolist()) / len(used),
        "experts_used_min": float(used.min()),
    }


def _counts(logits: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """(E,) float64. A token chooses an expert once at most."""
    of_tokens = torch.zeros(logits.shape, dtype=torch.float64, device=logits.device).scatter_(1, chosen, 1.0)
    return weights.double() @ of_tokens
