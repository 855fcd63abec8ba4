"""The losses of methods that learn from pairs have the values of their papers, and lead to the policies these prove."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_methods import LN_2, METHODS, REFERENCED, Batch, loss, method

from steerboard_contracts.methods import needed_method
from steerboard_contracts.pairs import BetaPairConfig, ReferencedPairConfig
from steerboard_workers.alignment.methods.orpo import log_odds
from steerboard_workers.alignment.pairs import PairObjective, Responses


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
    """Two passes over the same tokens that round differently change nothing."""
    lengths, log_probs = [3, 7, 40, 1], [-6.0, -9.0, -80.0, -4.0]
    for noise in (0.0, 1e-6, -1e-6):
        reference = [value * (1 + noise * (-1) ** place) for place, value in enumerate(log_probs)]
        figures = measured(method(name, reduction=reduction), log_probs, Batch(lengths, reference))
        assert figures["loss"] == pytest.approx(expected, abs=2e-3 if noise else 1e-6)
        assert figures["pair_accuracy"] == 0.5
        assert figures["chosen_reward"] == pytest.approx(0, abs=1e-4)
        assert figures["rejected_reward"] == pytest.approx(0, abs=1e-4)
        assert (figures["chosen_log_prob"], figures["rejected_log_prob"]) == pytest.approx((-43.0, -6.5))
        assert figures["length_gap"] == 21.5 - 4
        assert figures["chosen_nll"] == pytest.approx(2.0)


def test_log_probs_are_summed_or_averaged_over_the_tokens_of_a_response():
    """Rewards of 2 and -1 nats over 4 and 2 tokens, at the beta of each."""
    batch = Batch([4, 2], [-10.0, -3.0])
    for reduction, beta, chosen, rejected in (("sum", 0.1, 2.0, -1.0), ("mean", 5.0, 0.5, -0.5)):
        figures = measured(method("dpo", reduction=reduction), [-8.0, -4.0], batch)
        assert figures["chosen_reward"] == pytest.approx(beta * chosen)
        assert figures["rejected_reward"] == pytest.approx(beta * rejected)
        assert figures["margin"] == pytest.approx(beta * (chosen - rejected))
        assert figures["loss"] == pytest.approx(math.log1p(math.exp(-beta * (chosen - rejected))), rel=1e-6)
        assert figures["pair_accuracy"] == 1.0
    assert method("dpo", beta=2.0, reduction="mean").scale == 2.0
    figures = measured(method("ipo", reduction="mean"), [-8.0, -4.0], batch)
    assert figures["loss"] == pytest.approx((1.0 - 5.0) ** 2)


def test_sft_on_the_chosen_side_is_added_with_its_weight():
    batch = Batch([4, 2], [-8.0, -4.0])
    figures = measured(method("dpo", sft_weight=0.5), [-8.0, -4.0], batch)
    assert figures["loss"] == pytest.approx(LN_2 + 0.5 * 8.0 / 4)
    assert figures["chosen_nll"] == pytest.approx(2.0)


def test_simpo_compares_means_and_asks_for_a_margin():
    figures = measured(method("simpo", beta=2.5, gamma_beta_ratio=0.55), [-8.0, -6.5], Batch([10, 5]))
    assert figures["loss"] == pytest.approx(0.757599, abs=1e-6)
    assert (figures["chosen_reward"], figures["rejected_reward"]) == pytest.approx((-2.0, -3.25))
    with_sft = measured(method("simpo", sft_weight=1.0), [-8.0, -6.5], Batch([10, 5]))
    assert with_sft["loss"] == pytest.approx(0.757599 + 0.8, abs=1e-6)


def test_orpo_is_sft_and_the_ratio_of_odds():
    odds = log_odds(torch.tensor([-0.8, -1.3], dtype=torch.float64))
    assert (odds[0] - odds[1]).item() == pytest.approx(0.778433, abs=1e-6)
    figures = measured(method("orpo"), [-8.0, -6.5], Batch([10, 5]))
    assert figures["loss"] == pytest.approx(0.837784, abs=1e-6)
    assert figures["margin"] == pytest.approx(0.1 * 0.778433, abs=1e-6)
    assert figures["pair_accuracy"] == 1.0


def test_orpo_learns_the_prompt_too_where_it_is_asked_to():
    """Behind a prompt with 3 learned tokens of 2 nats each: they are part of SFT, and of nothing else."""
    batch = Batch([10, 5])
    batch.label_counts = batch.response_lengths + 3
    objective = PairObjective(method("orpo"))
    prompt, chosen, rejected = torch.full((3,), -2.0), torch.full((10,), -0.8), torch.full((5,), -1.3)
    tokens = torch.cat([prompt, chosen, prompt, rejected])
    value = objective.forward((tokens, None), batch)[0].item()
    assert value == pytest.approx(0.037784 + (8.0 + 6.0) / 13, abs=1e-6)


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
    value, _ = PairObjective(method("orpo")).forward((tokens, None), Batch([1, 1]))
    value.backward()
    assert value.isfinite()
    assert tokens.grad.isfinite().all()


@pytest.mark.parametrize("name", METHODS)
def test_extreme_differences_stay_finite(name):
    for chosen, rejected in ((-1e4, -1.0), (-1.0, -1e4)):
        batch = Batch([3, 5], [-2.0, -3.0] if name in REFERENCED else None)
        values = torch.tensor([chosen / 3] * 3 + [rejected / 5] * 5, requires_grad=True)
        value, _ = PairObjective(method(name)).forward((values, None), batch)
        value.backward()
        assert value.isfinite()
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


# -- configs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*METHODS, "kto"])
def test_fields_of_a_method_cite_where_their_defaults_are_from(name):
    config = needed_method(name).config
    schema = config.model_json_schema()["properties"]
    own = {"lr", "batch", "beta", "tau", "label_smoothing", "reduction", "sft_weight", "gamma_beta_ratio"}
    own |= {"preference_weight", "quality_weight", "sft_on", "lambda_desirable", "lambda_undesirable"}
    for field in own & set(schema):
        assert schema[field].get("source"), field
    form = set(needed_method(name).form)
    assert form <= own
    # What the default of beta depends on is next to it.
    assert "reduction" in form or not {"beta", "reduction"} <= set(schema)


def test_beta_defaults_to_what_suits_the_reduction():
    for name in REFERENCED:
        config = needed_method(name).config
        assert issubclass(config, ReferencedPairConfig)
        if issubclass(config, BetaPairConfig):
            assert config(method=name).strength == 0.1
            assert config(method=name, reduction="mean").strength == 5.0
            assert config(method=name, reduction="mean", beta=2.0).strength == 2.0


def test_kto_has_a_default_of_beta_for_sums_only():
    """A mean is smaller by the length of the answer, and no source has a beta for it."""
    config = needed_method("kto").config
    assert config(method="kto").strength == 0.1
    assert config(method="kto", beta=0.3).strength == 0.3
    assert config(method="kto", reduction="mean", beta=2.0).strength == 2.0
    with pytest.raises(ValueError, match="beta is needed with reduction mean"):
        config(method="kto", reduction="mean")


def test_the_preference_model_says_how_its_warm_up_differs_from_the_authors_script():
    field = needed_method("preference_model").config.model_json_schema()["properties"]["warmup_ratio"]
    assert field["default"] == 0.03
    assert "40 steps" in field["source"]


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
    responses = Responses.of(torch.tensor([-1.0, -2.0, -3.0, -1.0, -5.0]), batch)
    assert responses.before.tolist() == [-1.0, -1.0]
    assert responses.log_probs.tolist() == [-5.0, -5.0]
    assert responses.means.tolist() == [-2.5, -5.0]
