"""Limits of pair methods, on policies of one prompt and a few answers: closed forms and the papers' losses."""

from __future__ import annotations

import math

import pytest
import torch
from pair_methods import REFERENCED, Batch, method
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

from steerboard_workers.alignment.pairs import PairObjective

REFERENCE = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
REWARDS = torch.tensor([0.0, 1.0, -0.5, 2.0], dtype=torch.float64)


def trained_policy(name: str, preferred: torch.Tensor, **config) -> torch.Tensor:
    """The policy (answers,) that minimises the expected loss, where answer i is preferred to j with probability
    preferred[i, j] and every pair is equally likely."""
    trained = method(name, **config)
    logits = REFERENCE.log().clone().requires_grad_()
    chosen, rejected = torch.where(~torch.eye(len(REFERENCE), dtype=torch.bool))
    optimiser = torch.optim.LBFGS(
        [logits], max_iter=400, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def expected_loss():
        optimiser.zero_grad()
        log_ratios = logits.log_softmax(-1) - REFERENCE.log()
        total = (preferred[chosen, rejected] * trained.loss(log_ratios[chosen], log_ratios[rejected])).sum()
        total.backward()
        return total

    optimiser.step(expected_loss)
    return logits.detach().softmax(-1)


def bradley_terry_preferences() -> torch.Tensor:
    return torch.sigmoid(REWARDS[:, None] - REWARDS[None, :])


@pytest.mark.parametrize("beta", [0.2, 1.0, 3.0])
def test_dpo_converges_to_the_reference_times_exp_r_over_beta(beta):
    """Its optimum is that of reward maximisation with a KL penalty: Eq. 4 of arXiv 2305.18290."""
    policy = trained_policy("dpo", bradley_terry_preferences(), beta=beta)
    expected = REFERENCE * (REWARDS / beta).exp()
    torch.testing.assert_close(policy, expected / expected.sum(), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", ["robust_dpo", "cdpo"])
def test_with_flipped_labels_robust_dpo_finds_the_policy_of_clean_ones(name):
    """cDPO does not: its policy is that of labels which are smoothed once more."""
    clean, e = bradley_terry_preferences(), 0.15
    flipped = (1 - e) * clean + e * clean.T
    policy = trained_policy(name, flipped, beta=1.0, label_smoothing=e)
    preferred = clean if name == "robust_dpo" else (1 - e) * flipped + e * flipped.T
    torch.testing.assert_close(policy, trained_policy("dpo", preferred, beta=1.0), rtol=1e-4, atol=1e-8)
    if name == "robust_dpo":
        expected = REFERENCE * REWARDS.exp()
        torch.testing.assert_close(policy, expected / expected.sum(), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_ipo_converges_to_its_stationary_point(tau):
    """log pi / ref = p / tau + constant, with p the mean probability of being preferred to the other answers.

    From Eq. 17's gradient summed over pairs: sum_j (h_ij - (p_ij - p_ji) / (2 tau)) = 0 for each answer i.
    """
    preferred = bradley_terry_preferences()
    policy = trained_policy("ipo", preferred, tau=tau)
    others = (preferred - preferred.T).sum(1) / (2 * tau * len(REFERENCE))
    expected = REFERENCE * others.exp()
    torch.testing.assert_close(policy, expected / expected.sum(), rtol=1e-5, atol=1e-9)


def test_with_certain_preferences_ipo_stays_near_the_reference_where_dpo_runs_away():
    certain = (REWARDS[:, None] > REWARDS[None, :]).double()
    ipo, dpo = (trained_policy(name, certain) for name in ("ipo", "dpo"))
    assert ipo.min() > 1e-5 > dpo.min()


# -- the same, of one prompt with two answers, through the objective that trains ----------------------------------

BASE = torch.tensor([0.6, 0.4], dtype=torch.float64)
BASE_LOG = [math.log(p) for p in BASE.tolist()]


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def by_hand_mpo(log_w: float, log_l: float, ref_w: float, ref_l: float) -> float:
    r_w, r_l = 0.5 * (log_w - ref_w), 0.5 * (log_l - ref_l)
    return 0.8 * softplus(r_l - r_w) + 0.2 * (softplus(-r_w) + softplus(r_l)) - 0.3 * log_w


def by_hand_simpo(log_w: float, log_l: float, ref_w: float, ref_l: float) -> float:
    return softplus(-(2.0 * (log_w - log_l) - 2.0 * 0.5))


def by_hand_orpo(log_w: float, log_l: float, ref_w: float, ref_l: float) -> float:
    odds = [math.exp(log_prob) / -math.expm1(log_prob) for log_prob in (log_w, log_l)]
    return -log_w + 0.7 * math.log1p(odds[1] / odds[0])


TWO_ANSWERS = {
    "mpo": (by_hand_mpo, {"beta": 0.5, "preference_weight": 0.8, "quality_weight": 0.2, "sft_weight": 0.3}),
    "simpo": (by_hand_simpo, {"beta": 2.0, "gamma_beta_ratio": 0.5}),
    "orpo": (by_hand_orpo, {"beta": 0.7}),
}


def expected_loss(name: str, logit: torch.Tensor, preferred: float, **config) -> torch.Tensor:
    """The expected loss of the policy sigma(logit), 1 - sigma(logit) where the first answer is preferred with
    probability `preferred`, and the objective sees one pair of each order."""
    objective = PairObjective(method(name, **config))
    log_probs = torch.cat([F.logsigmoid(logit), F.logsigmoid(-logit)])
    reference = BASE_LOG if name in REFERENCED else None
    first, second = (
        objective.forward((log_probs[order], None), Batch([1, 1], reference and [reference[i] for i in order]))[0]
        for order in ([0, 1], [1, 0])
    )
    return preferred * first + (1 - preferred) * second


def trained_logit(name: str, preferred: float, **config) -> float:
    logit = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    exact = {"tolerance_grad": 1e-10, "tolerance_change": 0}
    optimiser = torch.optim.LBFGS([logit], max_iter=200, line_search_fn="strong_wolfe", **exact)

    def closure():
        optimiser.zero_grad()
        total = expected_loss(name, logit, preferred, **config)
        total.backward()
        return total

    optimiser.step(closure)
    return logit.item()


@pytest.mark.parametrize("preferred", [0.35, 0.8])
@pytest.mark.parametrize("name", TWO_ANSWERS)
def test_of_two_answers_the_policy_is_the_minimum_of_the_papers_loss(name, preferred):
    """Written out by hand, and minimised by another algorithm in float64; the objective counts tokens in float32."""
    of_pair, config = TWO_ANSWERS[name]

    def by_hand(logit: float) -> float:
        log_0, log_1 = -softplus(-logit), -softplus(logit)
        first, second = of_pair(log_0, log_1, *BASE_LOG), of_pair(log_1, log_0, *BASE_LOG[::-1])
        return preferred * first + (1 - preferred) * second

    best = minimize_scalar(by_hand, bounds=(-8, 8), method="bounded", options={"xatol": 1e-9})
    assert 0.05 < abs(best.x) < 6
    assert trained_logit(name, preferred, **config) == pytest.approx(best.x, abs=1e-3)
    there = torch.tensor([best.x], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(expected_loss(name, there, preferred, **config), there)
    assert slope.item() == pytest.approx(0, abs=1e-6)


def test_without_a_margin_simpo_converges_to_exp_r_over_beta_whatever_the_reference():
    """beta (log pi_0 - log pi_1) = r_0 - r_1: DPO's optimum with a uniform reference."""
    preferred, beta = torch.sigmoid(torch.tensor(1.2)).item(), 2.0
    logit = trained_logit("simpo", preferred, beta=beta, gamma_beta_ratio=0.0)
    assert logit == pytest.approx(1.2 / beta, abs=1e-4)


@pytest.mark.parametrize(("preferred", "sign"), [(0.8, 1), (0.3, -1)])
def test_of_two_answers_hinge_stops_at_the_margin(preferred, sign):
    """The expected loss is linear up to h = 1 / beta on the side of the majority, and rises beyond it, so that
    pi_0 / pi_1 = (ref_0 / ref_1) exp(+-1 / beta), however large the majority."""
    beta = 0.5
    logit = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    for step in range(1000):
        (slope,) = torch.autograd.grad(expected_loss("hinge", logit, preferred, beta=beta), logit)
        with torch.no_grad():
            logit -= 40 / (step + 40) * slope
    assert logit.item() == pytest.approx(BASE_LOG[0] - BASE_LOG[1] + sign / beta, abs=0.02)
