"""An engine that samples is not quite the model that learns: the difference is measured, weighed, and refused above a
bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from running import ran

from steerboard_workers.alignment.online.answers import SamplerDiffers, sampler_metrics, sampler_weights
from steerboard_workers.alignment.rollouts import Rollout
from steerboard_workers.stages.training.sampling.live_policy import ModuleSampler

QUICK = {
    "run": "train",
    "method": "rloo",
    "rules": [{"kind": "regex", "pattern": "s"}],
    "batch": 6,
    "max_length": 96,
    "checkpoint_every": 0,
    "lr": 1e-2,
    "max_steps": 2,
    "max_new_tokens": 8,
    "answers": 4,
}


def rollout(*log_probs: float) -> Rollout:
    ids = np.arange(len(log_probs), dtype=np.int32)
    return Rollout(0, 0, ids, np.array(log_probs, dtype=np.float32), "", True)


def test_a_token_weighs_its_ratio_up_to_the_cap_and_the_difference_is_in_nats():
    rollouts = [rollout(-1.0, -2.0), rollout(-3.0)]
    trained = [np.array([-1.5, -2.0], dtype=np.float32), np.array([-1.0], dtype=np.float32)]
    first, second = sampler_weights(rollouts, trained, 2.0)
    assert first.tolist() == pytest.approx([math.exp(-0.5), 1.0])
    assert second.tolist() == pytest.approx([2.0])  # exp(2), capped
    metrics = sampler_metrics(rollouts, trained, 1.0)
    assert (metrics["sampler_difference"], metrics["sampler_difference_max"]) == pytest.approx((2.5 / 3, 2.0))
    with pytest.raises(SamplerDiffers, match=r"0\.833 nats .* max_sampler_difference is 0\.8"):
        sampler_metrics(rollouts, trained, 0.8)


class TestRuns:
    @pytest.fixture
    def told_less(self, monkeypatch):
        """The sampler reports its tokens as less likely than they are, by log 1.5."""
        begin = ModuleSampler.begin

        def drawn(self, answers, prompts, temperature):
            begin(self, answers, prompts, temperature)
            for answer in answers:
                answer.log_probs = [log_prob - math.log(1.5) for log_prob in answer.log_probs]

        monkeypatch.setattr(ModuleSampler, "begin", drawn)

    def test_another_policy_fails_the_run_with_what_to_do(self, make_stage, base_model, told_less):
        with pytest.raises(SamplerDiffers, match=r"0\.405 nats") as caught:
            ran(make_stage(QUICK, model=base_model))
        assert "raise max_sampler_difference" in caught.value.hint

    def test_the_weights_multiply_the_gradient(self, make_stage, base_model, told_less):
        """SGD would move 1.5 times as far; here the norm of the gradient shows it."""
        common = {**QUICK, "max_sampler_difference": 1, "max_steps": 1, "kl_weight": 0}
        plain = ran(make_stage(common, model=base_model))[1]
        weighed = ran(make_stage({**common, "sampler_weight_cap": 2}, model=base_model))[1]
        capped = ran(make_stage({**common, "sampler_weight_cap": 1.2}, model=base_model))[1]
        assert weighed["grad_norm"] / plain["grad_norm"] == pytest.approx(1.5, rel=1e-4)
        assert capped["grad_norm"] / plain["grad_norm"] == pytest.approx(1.2, rel=1e-4)
        assert weighed["sampler_weight"] == pytest.approx(1.5, rel=1e-4)
        assert "sampler_weight" not in plain
