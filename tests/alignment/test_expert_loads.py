"""Figures of how evenly experts are used, by closed forms."""

from __future__ import annotations

import pytest
import torch

from steerboard_workers.alignment.balance import assigned, balance_loss, load_figures, loads, probabilities
from steerboard_workers.alignment.replay import Routes


def routes(*chosen: list[list[int]], experts: int = 4) -> list[Routes]:
    """Layers whose routers are all but certain of what they choose."""
    layers = []
    for layer in chosen:
        logits = torch.full((len(layer), experts), -100.0)
        logits.scatter_(1, torch.tensor(layer), 0.0)
        layers.append(Routes(logits, torch.tensor(layer)))
    return layers


@pytest.mark.parametrize(
    ("counts", "used", "largest"),
    [([5, 5, 5, 5], 1.0, 1.0), ([9, 9, 0, 0], 0.5, 2.0), ([7, 0, 0, 0], 0.25, 4.0)],
)
def test_n_of_all_experts_used_alike_are_a_share_of_n(counts, used, largest):
    figures = load_figures(torch.tensor([counts, [1, 1, 1, 1]], dtype=torch.float64))
    assert figures["experts_used_min"] == pytest.approx(used)
    assert figures["experts_used"] == pytest.approx((used + 1) / 2)
    assert figures["expert_load_max"] == pytest.approx(largest)


def test_padding_counts_nothing_and_a_shared_token_as_often_as_it_is_seen():
    weights = torch.tensor([3.0, 1.0, 0.0])
    layers = routes([[0, 1], [1, 2], [3, 2]], [[2, 3], [0, 1], [0, 1]])
    assert loads(layers, weights).tolist() == [[3, 4, 1, 0], [1, 1, 3, 3]]
    assert assigned(layers, weights).tolist() == [4, 5, 4, 3]
    assert probabilities(layers, weights).tolist() == pytest.approx([2, 2.5, 2, 1.5])


def test_the_loss_is_k_of_even_loads_and_e_of_one_expert_alone():
    even = routes([[0, 1], [2, 3]])
    weights = torch.ones(2)
    assert balance_loss(assigned(even, weights), probabilities(even, weights), 2).item() == pytest.approx(2)
    one = routes([[1], [1]])
    assert balance_loss(assigned(one, weights), probabilities(one, weights), 2).item() == pytest.approx(4)
