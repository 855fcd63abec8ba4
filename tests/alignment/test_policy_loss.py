"""Each policy loss has the values and gradients of its paper, written out here for single answers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from online_rewards import config_of
from pydantic import ValidationError

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.objective import ADVANTAGES, OLD, PolicyGradientObjective, Turn
from steerboard_workers.alignment.policy_gradient import advantages as adv
from steerboard_workers.alignment.policy_gradient import clipping, losses

# Two answers, of three tokens and of two: log-probs before the update and now, and the advantage of each answer.
OLD_LOG_PROBS = ([-1.0, -1.0, -2.0], [-0.5, -1.5])
NEW_LOG_PROBS = ([-0.4, -1.3, -2.0], [-0.9, -1.4])
ANSWER_ADVANTAGES = (1.5, -0.5)
LONGEST = 4
OLD_TOKENS, NEW_TOKENS = (list(itertools.chain(*log_probs)) for log_probs in (OLD_LOG_PROBS, NEW_LOG_PROBS))


def loss_of(method: str, **changes) -> tuple[float, torch.Tensor, dict[str, float]]:
    """(loss, its gradient with respect to each log-prob (5,), metrics) of both answers as one global batch."""
    config = config_of(method, **changes)
    examples = []
    for row, (old, advantage) in enumerate(zip(OLD_LOG_PROBS, ANSWER_ADVANTAGES, strict=True)):
        ids = np.arange(1, len(old) + 1, dtype=np.int32)
        values = {OLD: np.array(old), ADVANTAGES: np.full(len(old), advantage)}
        given = {name: (value.astype(np.float32),) for name, value in values.items()}
        examples.append(Example(row, ids[:1], (ids,), token_values=given))
    batch = Batcher("packed", "labels", 64, 0).collate(examples)
    log_probs = torch.tensor(NEW_TOKENS).requires_grad_()
    objective = PolicyGradientObjective(config, Turn(False), LONGEST)
    loss, sums = objective.forward((log_probs, None), batch)
    loss = loss / objective.count(examples)
    metrics = objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))
    return loss.item(), torch.autograd.grad(loss, log_probs)[0], metrics


def ratios() -> tuple[list[float], list[float]]:
    one, other = (
        [math.exp(n - o) for n, o in zip(new, old, strict=True)]
        for new, old in zip(NEW_LOG_PROBS, OLD_LOG_PROBS, strict=True)
    )
    return one, other


def test_a_sequence_ratio_is_the_geometric_mean_and_clips_an_answer_as_a_whole():
    """Eq. 5 to 7 of arXiv 2507.18071, where the tokens of the first answer would be clipped in part."""
    first, second = (math.exp(sum(map(math.log, of)) / len(of)) for of in ratios())
    assert (first, second) == pytest.approx((math.exp(0.1), math.exp(-0.15)))
    # The first is above 1 and good, the second below 1 and bad: within wide bounds both learn.
    loss, gradient, metrics = loss_of("gspo", clip_low=0.3, clip_high=0.3)
    assert loss == pytest.approx(-(first * 1.5 + second * -0.5) / 2, rel=1e-5)
    assert gradient.tolist() == pytest.approx([-first * 1.5 / 3 / 2] * 3 + [second * 0.5 / 2 / 2] * 2, rel=1e-5)
    assert metrics["clip_share"] == 0
    loss, gradient, metrics = loss_of("gspo", clip_low=0.3, clip_high=0.05)
    assert loss == pytest.approx(-(1.05 * 1.5 + second * -0.5) / 2, rel=1e-5)
    assert gradient.tolist()[:3] == [0, 0, 0]
    assert metrics["clip_share"] == pytest.approx(3 / 5)
    _, gradient, metrics = loss_of("gspo")  # the paper's bounds are far smaller
    assert (gradient == 0).all()
    assert metrics["clip_share"] == 1


@pytest.mark.parametrize("reducer", ["token", "sequence", "constant"])
def test_the_gradient_of_single_tokens_is_that_of_the_whole_sequence_where_their_advantages_are_equal(reducer):
    """Eq. 14 against Eq. 7 of arXiv 2507.18071, whose gradient is written out by autograd."""
    old, counts = torch.tensor(OLD_TOKENS), torch.tensor([3.0, 2.0])
    a = torch.tensor([1.5] * 3 + [-0.5] * 2)
    gradients = []
    for whole in (True, False):
        log_probs = torch.tensor(NEW_TOKENS).requires_grad_()
        if whole:
            parts = [x.mean().exp().expand(len(x)) for x in (log_probs - old).split([3, 2])]
            ratio = torch.cat(parts)
        else:
            ratio = losses.sequence_ratios(log_probs, old, counts)
        loss = losses.reduced(clipping.clipped_surrogate(ratio, a, 0.3, 0.3), counts, reducer, LONGEST)
        gradients.append(torch.autograd.grad(loss, log_probs)[0])
    torch.testing.assert_close(*gradients)


def test_a_token_keeps_its_own_advantage_under_the_ratio_of_its_sequence():
    log_probs = torch.tensor(NEW_LOG_PROBS[0]).requires_grad_()
    ratio = losses.sequence_ratios(log_probs, torch.tensor(OLD_LOG_PROBS[0]), torch.tensor([3.0]))
    a = torch.tensor([1.0, 0.0, -2.0])
    (gradient,) = torch.autograd.grad((-ratio * a).sum(), log_probs)
    assert gradient.tolist() == pytest.approx((-math.exp(0.1) * a).tolist(), rel=1e-5)


def test_a_bounded_weight_has_no_gradient_and_leaves_every_token_its_own():
    """Eq. 4 and 5 of arXiv 2506.13585."""
    first, second = ratios()
    weights = [min(ratio, 1.5) for ratio in first + second]
    assert weights[0] == 1.5 < first[0]
    advantages = [1.5] * 3 + [-0.5] * 2
    loss, gradient, metrics = loss_of("cispo", clip_high=0.5)
    terms = [-w * a for w, a in zip(weights, advantages, strict=True)]
    assert loss == pytest.approx(sum(t * n for t, n in zip(terms, NEW_TOKENS, strict=True)) / 5, rel=1e-5)
    assert gradient.tolist() == pytest.approx([term / 5 for term in terms], rel=1e-5)
    assert metrics["clip_share"] == pytest.approx(1 / 5)
    _, gradient, metrics = loss_of("cispo", clip_low=0.2, clip_high=0.5)
    assert gradient.tolist()[3] == pytest.approx(0.8 * 0.5 / 5, rel=1e-5)  # exp(-.4) is below .8
    assert metrics["clip_share"] == pytest.approx(3 / 5)


def test_a_gate_takes_more_of_a_gradient_the_further_its_ratio_is_from_1_and_the_temperature_decides_how_much():
    """arXiv 2511.20347: f(r) = 4 / tau sigma(tau (r - 1)), whose derivative is sech^2(tau (r - 1) / 2)."""
    first, second = ratios()
    taus = [1.0] * 3 + [1.05] * 2
    counts, advantages = [3, 3, 3, 2, 2], [1.5] * 3 + [-0.5] * 2
    loss, gradient, metrics = loss_of("sapo")
    gates = [4 / tau / (1 + math.exp(-tau * (r - 1))) for tau, r in zip(taus, first + second, strict=True)]
    expected = sum(-g * a / n / 2 for g, a, n in zip(gates, advantages, counts, strict=True))
    assert loss == pytest.approx(expected, rel=1e-5)
    kept = [1 / math.cosh(tau * (r - 1) / 2) ** 2 for tau, r in zip(taus, first + second, strict=True)]
    slopes = [-a * r * k / n / 2 for a, r, k, n in zip(advantages, first + second, kept, counts, strict=True)]
    assert gradient.tolist() == pytest.approx(slopes, rel=1e-5)
    assert metrics["clip_share"] == pytest.approx(1 - sum(kept) / 5, rel=1e-4)
    _, sharp, _ = loss_of("sapo", gate_positive=8.0)
    assert abs(sharp[0]) < abs(gradient[0]) / 2
    assert sharp[3:].tolist() == pytest.approx(gradient[3:].tolist())


def test_the_preset_of_decoupled_clips_is_the_mean_of_tokens_with_a_wider_bound_above():
    """Eq. 10 and 12 of arXiv 2503.14476."""
    terms = [-min(r * 1.5, min(max(r, 0.8), 1.28) * 1.5) for r in ratios()[0]]
    terms += [-min(r * -0.5, min(max(r, 0.8), 1.28) * -0.5) for r in ratios()[1]]
    loss, gradient, _ = loss_of("dapo")
    assert loss == pytest.approx(sum(terms) / 5, rel=1e-5)
    assert gradient[0] == 0  # exp(.6) is above 1.28


def test_an_update_on_fresh_answers_has_the_gradient_of_reinforce_by_every_loss():
    """The losses differ in their reducer alone at ratio 1."""
    names = [name for name, spec in methods().items() if issubclass(spec.config, PolicyGradientConfig)]
    assert {"ppo", "rloo", "grpo", "reinforce_pp", "gdpo", "gspo", "cispo", "dapo", "sapo"} <= set(names)
    log_probs, a = torch.tensor([-1.0, -2, -0.1]).requires_grad_(), torch.tensor([1.0, 1, 1])
    for name in names:
        config = needed_method(name).config(method=name, reducer="token")
        objective = PolicyGradientObjective(config, Turn(), LONGEST)
        of = losses.sequence_ratios if config.ratio == "sequence" else lambda new, old, _: losses.ratios(new, old)
        of_tokens, taken = objective._clipped(of(log_probs, log_probs.detach(), torch.tensor([3.0])), a, log_probs)
        (gradient,) = torch.autograd.grad(of_tokens.sum(), log_probs)
        assert gradient.tolist() == pytest.approx([-1, -1, -1]), name
        assert not taken.double().sum()


def test_no_bound_below_is_null():
    assert config_of("cispo").clip_range == (1.0, 4.0)
    assert config_of("rloo", clip_low=None, clip_high=0.3).clip_range == (1.0, 0.3)
    assert config_of("rloo", clip_low=None).clip_range == (1.0, math.inf)
    ratio, a = torch.tensor([0.01, 5.0]), torch.tensor([-1.0, 1.0])
    assert clipping.clipped_surrogate(ratio, a, *config_of("rloo", clip_low=None).clip_range).tolist() == [
        pytest.approx(0.01),
        -5.0,
    ]
    with pytest.raises(ValidationError, match="dual_clip bounds the surrogate, and clip is weight"):
        config_of("cispo", dual_clip=3.0)


def test_the_whole_step_gives_the_standard_deviation():
    rewards = np.array([[1.0, 3.0], [10.0, math.nan]])
    spread = np.std([1.0, 3.0, 10.0], ddof=1)
    scaled = adv.batch_standardised(rewards)
    assert scaled[0].tolist() == pytest.approx([-1 / spread, 1 / spread], rel=1e-5)
    assert np.isnan(scaled[1]).all()  # one answer alone
    assert adv.batch_standardised([[2.0, 2.0], [2.0, 2.0]]).tolist() == [[0, 0], [0, 0]]


def test_the_price_of_length_may_be_a_share_of_the_longest_answer():
    """4096 of 20480 in arXiv 2503.14476."""
    dapo = config_of("dapo")
    assert dapo.overlong_margin(20480) == 4096
    assert dapo.overlong_margin(8) == 2
    assert dapo.overlong_margin(1) is None
    assert config_of("rloo").overlong_margin(100) is None
    assert not config_of("rloo").shapes_length
    with pytest.raises(ValidationError, match="say the same"):
        config_of("dapo", overlong_tokens=8)


def test_configs_from_before_these_fields_mean_what_they_meant():
    old = {"method": "grpo", "clip_low": 0.1, "clip_high": None, "scaling": "none", "reducer": "constant", "answers": 4}
    config = needed_method("grpo").config.model_validate(old)
    assert (config.ratio, config.clip, config.clip_range) == ("token", "surrogate", (0.1, 0.1))
    assert needed_method("grpo").config.model_validate(config.model_dump()) == config
