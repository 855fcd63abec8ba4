"""An engine that samples is not quite the model that learns: the difference is measured, weighed, and refused above a
bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError
from running import ran

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment.online.mismatch import SamplerDiffers, correction, sampler_metrics
from steerboard_workers.alignment.rollouts import Rollout
from steerboard_workers.stages.training.sampling.live_policy import ModuleSampler
from steerboard_workers.stages.training.watching.health import StoppedByHealthRule

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


def config_of(**changes):
    return needed_method("rloo").config.model_validate({"method": "rloo", **changes})


def rollout(*log_probs: float) -> Rollout:
    ids = np.arange(len(log_probs), dtype=np.int32)
    return Rollout(0, 0, ids, np.array(log_probs, dtype=np.float32), "", True)


def test_a_token_weighs_its_ratio_up_to_the_cap_and_the_difference_is_in_nats():
    rollouts = [rollout(-1.0, -2.0), rollout(-3.0)]
    trained = [np.array([-1.5, -2.0], dtype=np.float32), np.array([-1.0], dtype=np.float32)]
    first, second = correction(rollouts, trained, config_of(sampler_weight_cap=2.0)).weights
    assert first.tolist() == pytest.approx([math.exp(-0.5), 1.0])
    assert second.tolist() == pytest.approx([2.0])  # exp(2), capped
    metrics = sampler_metrics(rollouts, trained, 1.0)
    assert (metrics["sampler_difference"], metrics["sampler_difference_max"]) == pytest.approx((2.5 / 3, 2.0))
    with pytest.raises(SamplerDiffers, match=r"0\.833 nats .* max_sampler_difference is 0\.8"):
        sampler_metrics(rollouts, trained, 0.8)


def of_ratios(*answers: list[float]) -> tuple[list[Rollout], list[np.ndarray]]:
    """Rollouts of log-probs -1, and what training computes so that the tokens have these ratios."""
    rollouts = [rollout(*[-1.0] * len(ratios)) for ratios in answers]
    return rollouts, [(np.log(ratios) - 1).astype(np.float32) for ratios in answers]


def test_the_figures_are_of_the_ratios_of_all_tokens():
    metrics = sampler_metrics(*of_ratios([0.5, 2.0], [1.0, 1.0]), bound=1.0)
    assert metrics["sampler_ratio"] == pytest.approx(4.5 / 4)
    assert metrics["sampler_ratio_max"] == pytest.approx(2)
    # r - 1 - log r of .5 and 2, a token.
    assert metrics["sampler_kl"] == pytest.approx((-0.5 + math.log(2) + 1 - math.log(2)) / 4)


def test_the_kl_of_the_sampler_is_that_of_its_distribution():
    """Each token is drawn in proportion to its probability."""
    sampler, policy = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    drawn = np.repeat(np.arange(3), [500, 300, 200])
    rollouts = [rollout(*np.log(sampler)[drawn])]
    metrics = sampler_metrics(rollouts, [np.log(policy)[drawn].astype(np.float32)], 9.0)
    assert metrics["sampler_kl"] == pytest.approx(float((sampler * np.log(sampler / policy)).sum()), rel=1e-4)


def test_an_answer_weighs_the_product_of_its_ratios_up_to_the_cap():
    of = of_ratios([1.5, 1.5], [2.0, 2.0, 1.0], [0.5, 0.5])
    whole = correction(*of, config_of(sampler_weight_cap=3.0, sampler_weight_level="sequence"))
    assert [weights.tolist() for weights in whole.weights] == [
        pytest.approx([2.25] * 2),
        pytest.approx([3.0] * 3),
        pytest.approx([0.25] * 2),
    ]
    assert (whole.truncated, whole.masked) == (pytest.approx(1 / 3), None)
    tokens = correction(*of, config_of(sampler_weight_cap=1.6))
    assert tokens.truncated == pytest.approx(2 / 7)


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        # In the mean: 1, 2, .5, and 1 with tokens far apart.
        ({"sampler_mean_high": 1.5}, [1, 0, 1, 1]),
        ({"sampler_mean_low": 0.8}, [1, 1, 0, 1]),
        ({"sampler_mean_low": 0.8, "sampler_mean_high": 1.5}, [1, 0, 0, 1]),
        ({"sampler_token_high": 3.0}, [1, 1, 1, 0]),
        ({"sampler_token_low": 0.3}, [1, 1, 1, 0]),
        ({"sampler_token_low": 0.7, "sampler_mean_high": 1.5}, [1, 0, 0, 0]),
    ],
)
def test_answers_whose_ratios_leave_a_band_are_masked_and_counted(bounds, kept):
    of = of_ratios([1.0, 1.0], [2.0, 2.0], [0.5, 0.5], [4.0, 0.25])
    masked = correction(*of, config_of(**bounds))
    assert [weights.tolist() for weights in masked.weights] == [[float(keep)] * 2 for keep in kept]
    assert masked.metrics() == {"sampler_weight": sum(kept) / 4, "sampler_masked": 1 - sum(kept) / 4}
    weighed = correction(*of, config_of(sampler_weight_cap=1.2, **bounds))
    assert weighed.weights[1].tolist() == pytest.approx([1.2 * kept[1]] * 2)


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

    @pytest.mark.parametrize("minibatches", [1, 2])
    def test_the_figures_are_the_same_where_the_only_update_reads_them(
        self, make_stage, base_model, told_less, minibatches
    ):
        common = {**QUICK, "method": "grpo", "max_sampler_difference": 1, "lr": 1e-4, "minibatches": minibatches}
        values = ran(make_stage({**common, "max_steps": 4}, model=base_model))[3]
        assert values["sampler_ratio"] == pytest.approx(1.5, rel=1e-3)
        assert values["sampler_ratio_max"] == pytest.approx(1.5, rel=1e-3)
        assert values["sampler_kl"] == pytest.approx(0.5 - math.log(1.5), rel=1e-2)

    def test_a_step_whose_answers_are_all_masked_leaves_the_model_as_it_is(self, make_stage, base_model, told_less):
        bounds = {"sampler_mean_high": 1.2, "max_sampler_difference": 1, "max_skipped": 1.0}
        first, second = ran(make_stage({**QUICK, **bounds}, model=base_model)).values()
        assert (first["sampler_masked"], second["skipped_updates"]) == (1, 2)

    def test_the_owner_learns_that_another_policy_samples(self, make_stage, base_model, told_less):
        rules = [{"kind": "sampler_kl", "above": 0.05, "steps": 1, "action": "stop"}]
        with pytest.raises(
            StoppedByHealthRule, match=r"what samples is another policy than what learns, once: .* 0\.09"
        ):
            ran(make_stage({**QUICK, "max_sampler_difference": 1, "health": rules}, model=base_model))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sampler_weight_level": "sequence"}, "needs sampler_weight_cap"),
        ({"sampler_mean_high": 0.9}, "greater than 1"),
        ({"sampler_token_low": 1.5}, "less than 1"),
    ],
)
def test_corrections_without_an_effect_are_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        config_of(**fields)
