"""Draws follow the softmax of the warped logits, and depend on nothing but their counter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from steerboard_contracts.decoding import Decoding
from steerboard_workers.engines import sampling
from steerboard_workers.engines.sampling import gumbel_noise, next_tokens, pruned_draw, stream_key, warp


def test_draws_follow_the_softmax():
    logits = torch.tensor([0.3, 2.0, -1.0, 1.0, -3.0])
    decoding = Decoding(temperature=0.8)
    keys = torch.tensor([stream_key(0, row, 0) for row in range(200)])
    drawn = torch.cat(
        [next_tokens(logits.expand(200, 5), decoding, keys, torch.full((200,), p)) for p in range(100)]
    ).bincount(minlength=5)
    expected = (logits / 0.8).softmax(-1) * 20_000
    assert stats.chisquare(drawn.numpy(), expected.double().numpy() / expected.sum().item() * 20_000).pvalue > 1e-3


def test_noise_is_gumbel_and_uncorrelated_between_neighbours():
    keys = torch.tensor([stream_key(3, row, n) for row in range(4) for n in range(2)])
    noise = gumbel_noise(keys, torch.arange(8), 4000)
    assert stats.kstest(noise.flatten().numpy(), "gumbel_r").pvalue > 1e-3
    assert np.abs(np.corrcoef(noise.numpy()) - np.eye(8)).max() < 0.08


def test_noise_of_a_row_does_not_depend_on_its_batch():
    keys = torch.tensor([stream_key(0, row, 0) for row in range(5)])
    positions = torch.tensor([0, 3, 9, 2, 2])
    whole = gumbel_noise(keys, positions, 100)
    assert torch.equal(whole[3:4], gumbel_noise(keys[3:4], positions[3:4], 100))


def test_row_sample_and_seed_each_give_another_stream():
    keys = {stream_key(seed, row, n) for seed in range(5) for row in range(50) for n in range(8)}
    assert len(keys) == 5 * 50 * 8


def test_warping_equals_transformers():
    torch.manual_seed(0)
    logits = torch.randn(16, 300) * 3
    theirs = TemperatureLogitsWarper(0.7)(None, logits)
    theirs = TopKLogitsWarper(40)(None, theirs)
    theirs = TopPLogitsWarper(0.9)(None, theirs)
    assert torch.equal(warp(logits, Decoding(temperature=0.7, top_k=40, top_p=0.9)), theirs)


FLAT = torch.zeros(64, 5000)


@pytest.mark.parametrize(
    ("logits", "decoding"),
    [
        *(
            (torch.randn(64, 5000, generator=torch.Generator().manual_seed(0)) * scale, Decoding(temperature=1.0))
            for scale in (0.1, 3)
        ),
        (torch.randn(64, 5000, generator=torch.Generator().manual_seed(1)) * 30, Decoding(temperature=0.3)),
        (torch.randn(64, 5000, generator=torch.Generator().manual_seed(2)) * 3, Decoding(temperature=1.0, top_k=5)),
        (torch.randn(64, 5000, generator=torch.Generator().manual_seed(3)) * 3, Decoding(temperature=1.0, top_p=0.5)),
        # Everything ties, all but one token are ruled out, there are fewer tokens than are always tried.
        (FLAT, Decoding(temperature=1.0)),
        (FLAT.masked_fill(torch.arange(5000) != 7, -torch.inf), Decoding(temperature=1.0)),
        (FLAT[:, :20], Decoding(temperature=1.0)),
    ],
)
def test_leaving_out_the_noise_of_tokens_that_cannot_win_changes_no_draw(logits, decoding):
    warped = warp(logits, decoding)
    for position in range(40):
        keys = torch.tensor([stream_key(position, row, 0) for row in range(len(logits))])
        positions = torch.full_like(keys, position)
        whole = gumbel_noise(keys, positions, logits.shape[1]).add_(warped).argmax(-1)
        assert torch.equal(pruned_draw(warped, keys, positions), whole)


def test_a_large_vocabulary_is_drawn_from_as_a_small_one(monkeypatch):
    logits = torch.randn(8, 400, generator=torch.Generator().manual_seed(4))
    keys = torch.tensor([stream_key(1, row, 0) for row in range(8)])
    whole = next_tokens(logits, Decoding(temperature=1.0), keys, torch.arange(8))
    tried = []
    monkeypatch.setattr(sampling, "_LARGE", 400)
    monkeypatch.setattr(sampling, "pruned_draw", lambda *given: tried.append(1) or pruned_draw(*given))
    assert torch.equal(next_tokens(logits, Decoding(temperature=1.0), keys, torch.arange(8)), whole)
    assert tried
