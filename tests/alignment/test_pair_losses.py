"""The losses of methods that learn from pairs have the values of their papers, and lead to the policies these prove."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

from steerboard_contracts.methods import method_of, needed_method
from steerboard_contracts.pairs import BetaPairConfig, ReferencedPairConfig
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.methods.orpo import log_odds
from steerboard_workers.alignment.pairs import PairObjective, Responses

METHODS = ["dpo", "ipo", "cdpo", "robust_dpo", "hinge", "mpo", "simpo", "orpo"]
REFERENCED = [name for name in METHODS if method_of(name).frozen]
LN_2 = math.log(2)


def method(name: str, **config):
    return training_of(needed_method(name).config(method=name, **config))


def loss(name: str, chosen: float, rejected: float, **config) -> float:
    scores = torch.tensor([[chosen], [rejected]], dtype=torch.float64)
    return method(name, **config).loss(*scores).item()


class Batch:
    """Chosen and rejected responses by turns."""

    def __init__(self, lengths: list[int], reference: list[float] | None = None) -> None:
        self.response_lengths = self.label_counts = torch.tensor(lengths, dtype=torch.float32)
        self.frozen_log_probs = {} if reference is None else {"reference": torch.tensor(reference)}


def measured(trained, log_probs: list[float], batch: Batch) -> dict[str, float]:
    """Metrics of responses whose tokens all have the same share of a log-prob."""
    counts = batch.label_counts
    tokens = (torch.tensor(log_probs) / counts).repeat_interleave(counts.long())
    objective = PairObjective(trained)
    total, sums = objective.forward((tokens, None), batch)
    values = dict(zip(objective.measures, sums.tolist(), strict=True))
    assert values["loss_sum"] == pytest.approx(total.item())
    return objective.metrics(values)


@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        ("dpo", {"beta": 1.0}, 0.40319),
        ("cdpo", {"beta": 1.0, "label_smoothing": 0.1}, 0.47319),
        ("robust_dpo", {"beta": 1.0, "label_smoothing": 0.1}, 0.31569),
        ("hinge", {"beta": 1.0}, 0.3),
        ("ipo", {"tau": 0.5}, 0.09),
        ("mpo", {"beta": 1.0, "quality_weight": 0.0, "preference_weight": 1.0}, 0.40319),
    ],
)
def test_a_difference_of_point_seven_costs_what_the_papers_have(name, config, expected):
    """beta h = .7, however it is spread over the sides and beta."""
    assert loss(name, 0.7, 0.0, **config) == pytest.approx(expected, abs=5e-6)
    if name != "mpo":
        assert loss(name, 0.3, -0.4, **config) == pytest.approx(expected, abs=5e-6)
    if "beta" in config:
        assert loss(name, 7.0, 0.0, **{**config, "beta": 0.1}) == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("dpo", LN_2), ("cdpo", LN_2), ("robust_dpo", LN_2), ("hinge", 1.0), ("ipo", 25.0)),
        # .8 ln 2 + .2 x 2 ln 2, and SFT: 2 nats for each of the chosen tokens.
        ("mpo", 1.2 * LN_2 + 2.0),
    ],
)
def test_a_policy_that_is_its_reference_has_rewards_of_0_and_is_right_on_half(name, expected, reduction):
    """Also when two passes over the same tokens round differently."""
    lengths, log_probs = [3, 7, 40, 1], [-6.0, -9.0, -80.0, -4.0]
    for noise in (0.0, 1e-6, -1e-6):
        reference = [value * (1 + noise * (-1) ** place) for place, value in enumerate(log_probs)]
        found = measured(method(name, reduction=reduction), log_probs, Batch(lengths, reference))
        assert found["loss"] == pytest.approx(expected, abs=2e-3 if noise else 1e-6)
        assert found["pair_accuracy"] == 0.5
        assert found["chosen_reward"] == pytest.approx(0, abs=1e-4)
        assert found["rejected_reward"] == pytest.approx(0, abs=1e-4)
        assert (found["chosen_log_prob"], found["rejected_log_prob"]) == pytest.approx((-43.0, -6.5))
        assert found["length_gap"] == 21.5 - 4
        assert found["chosen_nll"] == pytest.approx(2.0)


def test_log_probs_are_summed_or_averaged_over_the_tokens_of_a_response():
    """Rewards of 2 and -1 nats over 4 and 2 tokens, at the beta of each."""
    batch = Batch([4, 2], [-10.0, -3.0])
    for reduction, beta, chosen, rejected in (("sum", 0.1, 2.0, -1.0), ("mean", 5.0, 0.5, -0.5)):
        found = measured(method("dpo", reduction=reduction), [-8.0, -4.0], batch)
        assert found["chosen_reward"] == pytest.approx(beta * chosen)
        assert found["rejected_reward"] == pytest.approx(beta * rejected)
        assert found["margin"] == pytest.approx(beta * (chosen - rejected))
        assert found["loss"] == pytest.approx(math.log1p(math.exp(-beta * (chosen - rejected))), rel=1e-6)
        assert found["pair_accuracy"] == 1.0
    assert method("dpo", beta=2.0, reduction="mean").scale == 2.0
    found = measured(method("ipo", reduction="mean"), [-8.0, -4.0], batch)
    assert found["loss"] == pytest.approx((1.0 - 5.0) ** 2)


def test_sft_on_the_chosen_side_is_added_with_its_weight():
    batch = Batch([4, 2], [-8.0, -4.0])
    found = measured(method("dpo", sft_weight=0.5), [-8.0, -4.0], batch)
    assert found["loss"] == pytest.approx(LN_2 + 0.5 * 8.0 / 4)
    assert found["chosen_nll"] == pytest.approx(2.0)


def test_simpo_compares_means_and_asks_for_a_margin():
    found = measured(method("simpo", beta=2.5, gamma_beta_ratio=0.55), [-8.0, -6.5], Batch([10, 5]))
    assert found["loss"] == pytest.approx(0.757599, abs=1e-6)
    assert (found["chosen_reward"], found["rejected_reward"]) == pytest.approx((-2.0, -3.25))
    with_sft = measured(method("simpo", sft_weight=1.0), [-8.0, -6.5], Batch([10, 5]))
    assert with_sft["loss"] == pytest.approx(0.757599 + 0.8, abs=1e-6)


def test_orpo_is_sft_and_the_ratio_of_odds():
    odds = log_odds(torch.tensor([-0.8, -1.3], dtype=torch.float64))
    assert (odds[0] - odds[1]).item() == pytest.approx(0.778433, abs=1e-6)
    found = measured(method("orpo"), [-8.0, -6.5], Batch([10, 5]))
    assert found["loss"] == pytest.approx(0.837784, abs=1e-6)
    assert found["margin"] == pytest.approx(0.1 * 0.778433, abs=1e-6)
    assert found["pair_accuracy"] == 1.0


def test_orpo_learns_the_prompt_too_where_it_is_asked_to():
    """Behind a prompt with 3 learned tokens of 2 nats each: they are part of SFT, and of nothing else."""
    batch = Batch([10, 5])
    batch.label_counts = batch.response_lengths + 3
    objective = PairObjective(method("orpo"))
    prompt, chosen, rejected = torch.full((3,), -2.0), torch.full((10,), -0.8), torch.full((5,), -1.3)
    tokens = torch.cat([prompt, chosen, prompt, rejected])
    found = objective.forward((tokens, None), batch)[0].item()
    assert found == pytest.approx(0.037784 + (8.0 + 6.0) / 13, abs=1e-6)


@given(log_prob=st.floats(-1e4, 0.0))
@settings(max_examples=200)
def test_log_odds_are_exact_and_finite_for_every_probability(log_prob):
    for dtype in (torch.float32, torch.float64):
        given = torch.tensor([log_prob], dtype=dtype, requires_grad=True)
        odds = log_odds(given)
        odds.sum().backward()
        assert odds.isfinite().all()
        assert given.grad.isfinite().all()
        exact = float(given)
        if exact < -1e-11:
            precise = exact - (math.log(-math.expm1(exact)) if exact > -0.6 else math.log1p(-math.exp(exact)))
            assert odds.item() == pytest.approx(precise, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("log_prob", [-1e-8, 0.0, -1e4])
def test_the_odds_ratio_is_finite_at_both_ends(log_prob):
    tokens = torch.tensor([log_prob, -1.3], requires_grad=True)
    found, _ = PairObjective(method("orpo")).forward((tokens, None), Batch([1, 1]))
    found.backward()
    assert found.isfinite()
    assert tokens.grad.isfinite().all()


@pytest.mark.parametrize("name", METHODS)
def test_extreme_differences_stay_finite(name):
    for chosen, rejected in ((-1e4, -1.0), (-1.0, -1e4)):
        batch = Batch([3, 5], [-2.0, -3.0] if name in REFERENCED else None)
        values = torch.tensor([chosen / 3] * 3 + [rejected / 5] * 5, requires_grad=True)
        found, _ = PairObjective(method(name)).forward((values, None), batch)
        found.backward()
        assert found.isfinite()
        assert values.grad.isfinite().all()


@pytest.mark.parametrize("name", METHODS)
@given(chosen=st.floats(-8, 0), rejected=st.floats(-8, 0))
@settings(max_examples=20, deadline=None)
def test_no_step_prefers_the_rejected_side(name, chosen, rejected):
    """The gradient never pushes the chosen side down against the rejected one, below each method's target."""
    values = torch.tensor([chosen, rejected], dtype=torch.float64, requires_grad=True)
    trained = method(name)
    scores = log_odds(values) if name == "orpo" else values
    trained.loss(scores[:1], scores[1:]).sum().backward()
    target = {"ipo": 5.0, "cdpo": math.log(9) / 0.1}.get(name, math.inf)
    if chosen - rejected < target and name != "robust_dpo":
        assert values.grad[0] <= 0
        assert values.grad[1] >= 0


# -- policies of one prompt and a few answers ------------------------------------------------------------------

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
    found = trained_policy("dpo", bradley_terry_preferences(), beta=beta)
    expected = REFERENCE * (REWARDS / beta).exp()
    torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", ["robust_dpo", "cdpo"])
def test_with_flipped_labels_robust_dpo_finds_the_policy_of_clean_ones(name):
    """cDPO does not: its policy is that of labels which are smoothed once more."""
    clean, e = bradley_terry_preferences(), 0.15
    flipped = (1 - e) * clean + e * clean.T
    found = trained_policy(name, flipped, beta=1.0, label_smoothing=e)
    preferred = clean if name == "robust_dpo" else (1 - e) * flipped + e * flipped.T
    torch.testing.assert_close(found, trained_policy("dpo", preferred, beta=1.0), rtol=1e-4, atol=1e-8)
    if name == "robust_dpo":
        expected = REFERENCE * REWARDS.exp()
        torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_ipo_converges_to_its_stationary_point(tau):
    """log pi / ref = p / tau + constant, with p the mean probability of being preferred to the other answers.

    From Eq. 17's gradient summed over pairs: sum_j (h_ij - (p_ij - p_ji) / (2 tau)) = 0 for each answer i.
    """
    preferred = bradley_terry_preferences()
    found = trained_policy("ipo", preferred, tau=tau)
    others = (preferred - preferred.T).sum(1) / (2 * tau * len(REFERENCE))
    expected = REFERENCE * others.exp()
    torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-5, atol=1e-9)


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
    odds = [math.exp(one) / -math.expm1(one) for one in (log_w, log_l)]
    return -log_w + 0.7 * math.log1p(odds[1] / odds[0])


TWO_ANSWERS = {
    "mpo": (by_hand_mpo, {"beta": 0.5, "preference_weight": 0.8, "quality_weight": 0.2, "sft_weight": 0.3}),
    "simpo": (by_hand_simpo, {"beta": 2.0, "gamma_beta_ratio": 0.5}),
    "orpo": (by_hand_orpo, {"beta": 0.7}),
}


def expected_loss(name: str, logit: torch.Tensor, preferred: float, **config) -> torch.Tensor:
    """Of the policy sigma(logit), 1 - sigma(logit) where the first answer is preferred with probability `preferred`,
    and the objective sees one pair of each order."""
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
    found = trained_logit("simpo", preferred, beta=beta, gamma_beta_ratio=0.0)
    assert found == pytest.approx(1.2 / beta, abs=1e-4)


@pytest.mark.parametrize(("preferred", "sign"), [(0.8, 1), (0.3, -1)])
def test_of_two_answers_hinge_stops_at_the_margin(preferred, sign):
    """The expected loss is linear up to h = 1 / beta on the side of the majority, and rises beyond it, so that
    pi_0 / pi_1 = (ref_0 / ref_1) exp(+-1 / beta), however large the majority."""
    beta = 0.5
    logit = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    for step in range(2000):
        (slope,) = torch.autograd.grad(expected_loss("hinge", logit, preferred, beta=beta), logit)
        with torch.no_grad():
            logit -= 40 / (step + 40) * slope
    assert logit.item() == pytest.approx(BASE_LOG[0] - BASE_LOG[1] + sign / beta, abs=0.02)


# -- configs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_fields_of_a_method_cite_where_their_defaults_are_from(name):
    config = needed_method(name).config
    schema = config.model_json_schema()["properties"]
    own = {"lr", "batch", "beta", "tau", "label_smoothing", "reduction", "sft_weight", "gamma_beta_ratio"}
    own |= {"preference_weight", "quality_weight", "sft_on"}
    for field in own & set(schema):
        assert schema[field].get("source"), field
    assert set(needed_method(name).form) <= own


def test_beta_defaults_to_what_suits_the_reduction():
    for name in REFERENCED:
        config = needed_method(name).config
        assert issubclass(config, ReferencedPairConfig)
        if issubclass(config, BetaPairConfig):
            assert config(method=name).strength == 0.1
            assert config(method=name, reduction="mean").strength == 5.0
            assert config(method=name, reduction="mean", beta=2.0).strength == 2.0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dpo", {"beta": 0.0}),
        ("dpo", {"learn": "all"}),
        ("robust_dpo", {"label_smoothing": 0.5}),
        ("ipo", {"tau": 0.0}),
        ("ipo", {"beta": 0.1}),
        ("simpo", {"gamma_beta_ratio": -0.1}),
        ("mpo", {"preference_weight": 0, "quality_weight": 0, "sft_weight": 0}),
    ],
)
def test_what_means_nothing_is_refused(name, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        needed_method(name).config(method=name, **wrong)


def test_responses_are_read_behind_what_is_learned_of_their_prompt():
    batch = Batch([2, 1])
    batch.label_counts = torch.tensor([3.0, 2.0])
    found = Responses.of(torch.tensor([-1.0, -2.0, -3.0, -1.0, -5.0]), batch)
    assert found.before.tolist() == [-1.0, -1.0]
    assert found.log_probs.tolist() == [-5.0, -5.0]
    assert found.means.tolist() == [-2.5, -5.0]
