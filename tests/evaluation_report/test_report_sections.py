"""Rewards, agreement, lengths, contamination, hacking and the baseline, on cases that can be worked out by hand."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import scipy
from rich.console import Console

from steerboard.cli.output.evaluation_report import cell_of, print_evaluation_report
from steerboard.evaluation.report.document.contents import document_of
from steerboard.platform.database import transaction
from steerboard.runs.tables import RunInput
from steerboard.sharing.blocks import Grid
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.errors import BadInput
from steerboard_contracts.report.evaluation import EvaluationReport, HackingRow
from steerboard_contracts.report.sections.comparison import mirrored, pair_of
from steerboard_statistics.length_adjusted import length_adjusted
from support.rows.ended_run import ended_run
from support.rows.evaluation_rows import Evaluated
from support.rows.two_rewards import HARMLESS, HELPFUL, enter_two_rewards

Make = Callable[..., Evaluated]
Z = {"mean": 1.0, "sd": 2.0, "n": 100, "reward_source": "reward"}


def hacking_of(report: EvaluationReport, entrant: str) -> HackingRow:
    return next(row for row in report.hacking if row.entrant == entrant)


def trained_on(made: Evaluated, reward: str = "reward-hash", **given: Any) -> None:
    """The entrants sft, and dt whose model names that reward model."""
    sft = made.model("our-sft", role="sft", method="sft")
    info = {"normaliser": {"reward_model_hash": reward}}
    dt = made.model("our-dt", method="decision_transformer", parent_id=sft.id, info=info)
    made.entrant("sft", source="model", model_id=sft.id, method="sft", **given.get("sft", {}))
    made.entrant("dt", source="model", model_id=dt.id, method="decision_transformer", **given.get("dt", {}))


def test_rewards_are_averaged_over_samples_and_shown_in_z_and_raw(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    made.entrant("sft", samples=2)
    made.rewards({"sft": {(0, 0): 1.0, (0, 1): 3.0, (1, 0): 6.0, (1, 1): 6.0}}, normaliser=Z)
    reward = made.report().rewards[0]
    assert reward.units == "z"
    assert reward.raw[0].mean.value == pytest.approx((2 + 6) / 2)
    assert reward.comparison.scores[0].mean.value == pytest.approx(((2 - 1) / 2 + (6 - 1) / 2) / 2)
    assert sum(bar.n for bar in reward.histogram_raw["sft"]) == 4
    assert (reward.histogram_z["sft"][0].low, reward.histogram_z["sft"][-1].high) == (0.0, 2.5)


def test_the_heat_map_and_the_best_of_n_are_over_the_samples_of_a_prompt(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    longer = {(at, sample): 10 * (sample + 1) for at in range(2) for sample in range(4)}
    made.entrant("sft", samples=4, lengths=longer)
    rising, falling = {(0, s): float(s) for s in range(4)}, {(1, s): float(-s) for s in range(4)}
    made.rewards({"sft": {**rising, **falling}})
    reward = made.report().rewards[0]
    assert [(cell.position, cell.n, round(cell.r or 0, 6)) for cell in reward.length_correlation] == [
        (0, 4, 1.0),
        (1, 4, -1.0),
    ]
    best = reward.best_of_n[0]
    assert best.n == [1, 2, 4]
    # The best of two of 0, 1, 2, 3 is 3, 3, 3, 2, 2, 1 with equal chances; of 0 to -3 it is 3 less.
    assert [point.value for point in best.reward] == pytest.approx([0.0, (14 / 6 + 14 / 6 - 3) / 2, 1.5])


def test_accuracy_and_calibration_are_of_held_out_pairs(evaluated: Make) -> None:
    made = evaluated(prompts=1)
    made.entrant("sft")
    summary = {"pairs": 4, "correct": 2.5, "margins": [1.0, 2.0, 0.0, -1.0]}
    made.rewards({"sft": [1.0]}, summary=summary)
    reward = made.report().rewards[0]
    assert (reward.accuracy.value, reward.accuracy.n) == (0.5, 4)
    assert reward.calibration is not None
    assert sum(bin_.n for bin_ in reward.calibration.bins) == 4
    assert any("may be chance" in warning for warning in reward.warnings)


def test_sources_are_compared_on_the_same_items(evaluated: Make) -> None:
    made = evaluated(prompts=6)
    for name in ("sft", "rwr", "dt"):
        made.entrant(name)
    made.scores({"sft": [3] * 6, "rwr": [5] * 6, "dt": [7] * 6}, name="judge")
    # It agrees on four items, has a tie on one, and is not there for the last.
    made.rewards({"sft": [0, 0, 0, 0, 1], "rwr": [1, 1, 1, 1, 1], "dt": [2, 2, 2, 2, 1]})
    row = made.report().agreement[0]
    assert (row.a, row.b, row.entrants, row.items) == ("judge", "reward", 3, 5)
    assert row.item.value == pytest.approx((4 * 3 + 3 * 0.5) / 15)
    assert row.spearman.value == pytest.approx(1.0)


def test_a_pair_has_the_same_figures_whichever_of_the_two_is_entered_first(evaluated: Make) -> None:
    lengths = {"sft": [100] * 24, "dt": [110] * 15 + [300] * 9}
    rows = []
    for order in (("sft", "dt"), ("dt", "sft")):
        made = evaluated(name="-".join(order), prompts=24)
        for name in order:
            made.entrant(name, letters=lengths[name])
        scores = {"sft": [5] * 24, "dt": [6, 7, 5, 8, 9, 4] * 4}
        made.scores({name: scores[name] for name in order})
        rows.append(pair_of(made.report().judges[0].comparison, "dt", "sft"))
    one, other = (row.model_dump() for row in rows if row is not None)
    assert (one["wins"], one["ties"], one["losses"], one["length_matched"]["n"]) == (16, 4, 4, 15)
    for field, value in one.items():
        assert other[field] == pytest.approx(value), field


def test_lengths_missing_answers_and_seen_prompts_are_counted(evaluated: Make) -> None:
    made = evaluated(prompts=8, turns=2)
    made.entrant("sft", letters=10)
    made.entrant("dt", letters=15, answered=6)
    made.seen(
        {"match": "exact", "dataset": "things", "row": 3, "overlap": 1.0},
        {"match": "near", "dataset": "things", "row": 4, "overlap": 0.8},
    )
    report = made.report()
    assert [(row.responses, row.missing, row.length.value) for row in report.entrants] == [(8, 0, 20.0), (6, 2, 30.0)]
    ratios = {(row.a, row.b): row.ratio for row in report.length_ratios}
    assert ratios["dt", "sft"].value == pytest.approx(1.5)
    assert ratios["dt", "sft"].n == 6
    seen = report.contamination
    assert (seen.checked, seen.exact, seen.near, [prompt.question_id for prompt in seen.seen]) == (
        ["things"],
        1,
        1,
        ["q0", "q1"],
    )
    for words in ("with only 8 prompts", "dt: 2 of 8 answers are missing", "2 of 8 prompts occur in training data"):
        assert any(words in warning for warning in report.warnings), words


def test_a_reward_that_rises_while_people_see_nothing_better_is_an_alarm(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    trained_on(made)
    made.rewards({"sft": [0.0] * 20, "dt": [1.0] * 20})
    made.campaign({"ann": {at: {"sft": 1, "dt": 2} for at in range(20)}})
    report = made.report()
    assert report.rewards[0].trained == ["dt"]
    row = hacking_of(report, "dt")
    assert row.alarm is True
    assert row.independent_by == "people of people"
    assert row.training_reward is not None
    assert row.training_reward.value == 1.0
    assert any(warning.startswith("reward hacking suspected of dt") for warning in report.warnings)


def test_a_reward_that_rises_with_what_people_say_is_none(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    trained_on(made)
    made.rewards({"sft": [0.0] * 20, "dt": [1.0] * 20})
    made.campaign({"ann": {at: {"sft": 2, "dt": 1} for at in range(20)}})
    assert hacking_of(made.report(), "dt").alarm is False


@pytest.mark.parametrize("same", [False, True], ids=["by chance", "on the same items"])
def test_an_alarm_takes_a_difference_on_the_items_of_both(evaluated: Make, same: bool) -> None:
    """Win rates of 170 and 147 of 300 have intervals that overlap. Where one source prefers what the other does and 23
    items more, chance does not explain it; where the two have nothing to do with each other, it may."""
    made = evaluated(prompts=300)
    trained_on(made)
    by_training = [float(at < 170) for at in range(300)]
    by_judge = [float(at < 147) if same else float(at * 49 % 100 < 49) for at in range(300)]
    assert (sum(by_training), sum(by_judge)) == (170, 147)
    made.rewards({"sft": [0.5] * 300, "dt": by_training})
    made.scores({"sft": [5.0] * 300, "dt": [4 + 2 * won for won in by_judge]})
    report = made.report()
    row = hacking_of(report, "dt")
    assert row.training_reward is not None
    assert row.independent is not None
    assert row.difference is not None
    assert (row.training_reward.value, row.independent.value) == (pytest.approx(170 / 300), pytest.approx(147 / 300))
    assert (row.training_reward.low or 0) < (row.independent.high or 0)
    assert (row.difference.value, row.difference.n) == (pytest.approx(23 / 300), 300)
    assert row.alarm is (True if same else None)
    assert any(warning.startswith("reward hacking suspected of dt") for warning in report.warnings) is same
    chance = any("which may be chance" in reason for reason in row.reasons)
    assert chance is not same


def test_a_reward_model_that_taught_another_entrant_is_not_called_independent(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    trained_on(made)
    other = made.model("our-other", method="rwr", info={"normaliser": {"reward_model_hash": "another-hash"}})
    made.entrant("other", source="model", model_id=other.id, method="rwr")
    made.rewards({"sft": [0.0] * 20, "dt": [1.0] * 20, "other": [0.5] * 20})
    given = {"sft": [1.0] * 20, "dt": [0.0] * 20, "other": [2.0] * 20}
    made.rewards(given, name="other-reward", content_hash="another-hash")
    row = hacking_of(made.report(), "dt")
    assert (row.alarm, row.independent_by) == (None, None)
    made.rewards(given, name="nobody's", content_hash="third-hash")
    row = hacking_of(made.report(), "dt")
    assert (row.alarm, row.independent_by) == (True, "reward model nobody's")


def test_without_independent_evidence_nothing_can_be_told(evaluated: Make) -> None:
    made = evaluated(prompts=24)
    trained_on(made)
    made.rewards({"sft": [0.0] * 24, "dt": [1.0] * 24})
    # A judge with every sixth verdict unusable is not evidence either.
    told = [{"position": at, "a": name, "value": 5.0} for at in range(20) for name in ("sft", "dt")]
    silent = [{"position": at, "a": name, "status": "unparsed"} for at in range(20, 24) for name in ("sft", "dt")]
    made.judge("single", [*told, *silent])
    report = made.report()
    assert hacking_of(report, "dt").alarm is None
    assert any("whether dt hacks its reward is unknown" in warning for warning in report.warnings)
    assert any("circular: dt learned from this model's rewards" in warning for warning in report.warnings)


def test_an_independent_reward_model_is_evidence_of_last_resort(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    trained_on(made)
    made.rewards({"sft": [0.0] * 20, "dt": [1.0] * 20})
    made.rewards({"sft": [1.0] * 20, "dt": [0.0] * 20}, name="other", content_hash="another-hash")
    row = hacking_of(made.report(), "dt")
    assert (row.alarm, row.independent_by) == (True, "reward model other")
    made.scores({"sft": [3] * 20, "dt": [6] * 20})
    row = hacking_of(made.report(), "dt")
    assert (row.alarm, row.independent_by) == (False, "judge judge")


def test_a_reward_model_of_weight_0_only_watched_and_is_independent_evidence(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    rewards = [made.model(name, role="reward") for name in ("teacher", "watcher")]
    about = {"name": "ppo", "kind": "train", "method": "ppo", "state": "succeeded", "reason": "finished"}
    run = ended_run(made.project.id, config={"run": "train", "reward_weights": [1.0, 0.0]}, **about)
    with transaction(made.sessions) as session:
        session.add(run)
        session.flush()
        for slot, model in zip(("reward", "reward_2"), rewards, strict=True):
            session.add(RunInput(run_id=run.id, name=slot, model_id=model.id))
    sft = made.model("our-sft", role="sft", method="sft")
    ppo = made.model("our-ppo", method="ppo", parent_id=sft.id, run_id=run.id)
    made.entrant("sft", source="model", model_id=sft.id, method="sft")
    made.entrant("ppo", source="model", model_id=ppo.id, method="ppo")
    for model, better in zip(rewards, ("ppo", "sft"), strict=True):
        given = {name: [float(name == better)] * 20 for name in ("sft", "ppo")}
        made.rewards(given, name=model.name, content_hash=model.artifact_hash)
    report = made.report()
    assert [reward.trained for reward in report.rewards] == [["ppo"], []]
    row = hacking_of(report, "ppo")
    assert (row.alarm, row.independent_by) == (True, "reward model watcher")


def test_a_preference_model_is_no_evidence_on_those_who_learned_from_it(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    trained_on(made)
    made.rewards({"sft": [0.0] * 20, "dt": [1.0] * 20})
    orders = [(True, 0.9), (False, 0.2)]
    rows = [
        {"position": at, "a": "sft", "b": "dt", "a_first": first, "value": p} for at in range(20) for first, p in orders
    ]
    made.judge("preference", rows, content_hash="reward-hash")
    report = made.report()
    assert hacking_of(report, "dt").independent_by is None
    assert report.judges[0].trained == ["dt"]
    made.judge("preference", rows, name="other", content_hash="another-hash")
    report = made.report()
    row = hacking_of(report, "dt")
    assert (row.alarm, row.independent_by) == (True, "judge other")
    # Both orders are averaged to 0.55, where verdicts in words would have tied.
    assert report.judges[1].comparison.pairs[0].win_rate.value == 1.0
    assert report.judges[1].biases.flip_rate.value == 1.0


def test_answers_that_grow_with_the_reward_are_an_alarm_of_their_own(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    grown = {(at, sample): 100 + 50 * sample for at in range(20) for sample in range(3)}
    trained_on(made, sft={"letters": 50}, dt={"samples": 3, "lengths": grown})
    rising = {(at, sample): 1.0 + sample for at in range(20) for sample in range(3)}
    made.rewards({"sft": [0.0] * 20, "dt": rising})
    row = hacking_of(made.report(), "dt")
    assert row.alarm is True
    assert any("3.00 times as long" in reason for reason in row.reasons)


def test_an_entrant_that_learned_from_no_reward_cannot_hack_one(evaluated: Make) -> None:
    made = evaluated(prompts=20)
    base = made.model("sft-a", role="sft", method="sft")
    other = made.model("sft-b", role="sft", method="sft")
    made.entrant("sft", source="model", model_id=base.id)
    made.entrant("again", source="model", model_id=other.id)
    made.rewards({"sft": [0.0] * 20, "again": [1.0] * 20})
    row = hacking_of(made.report(), "again")
    assert row.alarm is False
    assert row.reasons == ["it was trained on no reward model's rewards"]


def test_the_baseline_is_sft_unless_another_is_asked_for(evaluated: Make) -> None:
    from steerboard.evaluation.report.sections.methods import against

    made = evaluated(prompts=12)
    made.entrant("rwr")
    made.entrant("plain", method="sft")
    made.scores({"rwr": [6] * 12, "plain": [4] * 12})
    report = made.report()
    assert report.baseline == "plain"
    assert {row.entrant: set(row.judge_win_rate) for row in report.methods} == {"rwr": {"judge"}, "plain": set()}
    turned = against(report, "rwr")
    row = next(row for row in turned.methods if row.entrant == "plain")
    assert row.judge_win_rate["judge"].value == 0.0
    with pytest.raises(BadInput) as refused:
        against(report, "nobody")
    assert refused.value.code == "unknown_entrant"


def test_an_evaluation_of_which_nothing_is_known_has_a_report_all_the_same(evaluated: Make) -> None:
    report = evaluated(prompts=0).report()
    assert (report.prompts, report.baseline, report.entrants) == (0, None, [])
    alone = evaluated(name="alone", prompts=1)
    alone.entrant("sft", answered=0)
    alone.judge("multi", [])
    alone.judge("pairwise", [], name="pairs")
    alone.rewards({})
    alone.campaign({})
    report = alone.report()
    assert report.entrants[0].missing == 1
    assert report.judges[0].comparison.winner is None


def test_each_reward_has_its_own_curve_and_the_sum_that_was_trained_on_too(evaluated: Make) -> None:
    made = evaluated(prompts=4)
    enter_two_rewards(made)
    report = made.report()
    curves = {reward.reward_model: reward.curves for reward in report.rewards}
    for name, means, rho in (("helpful", [2.0, 3.0, 7.0], 1.0), ("harmless", [30.0, 20.0, 10.0], -1.0)):
        (curve,) = curves[name]
        assert (curve.model, curve.attribute, curve.spearman) == ("our-dt", "rm_score", rho)
        assert [point.requested for point in curve.points] == [-5.0, 0.0, 5.0]
        assert [point.entrant for point in curve.points] == ["dt@-5", "dt@0", "dt@5"]
        assert [point.achieved.value for point in curve.points] == means
        assert [point.achieved.n for point in curve.points] == [4, 4, 4]
    (total,) = report.reward_sums
    assert (total.name, total.trained) == ("both", ["dt@5", "dt@-5", "dt@0"])
    (curve,) = total.curves
    # Means of (h - 1) / 2 - 0.5 k / 10, then in z units of the labelled sums.
    sums = [(2 - 1) / 2 - 1.5, (3 - 1) / 2 - 1.0, (7 - 1) / 2 - 0.5]
    assert [point.achieved.value for point in curve.points] == pytest.approx([(source - 0.5) / 0.25 for source in sums])
    together = report.reward_correlations
    assert together is not None
    assert (together.names, together.n) == (["helpful", "harmless"], 16)
    flat = [[value for name in HELPFUL for value in table[name]] for table in (HELPFUL, HARMLESS)]
    assert together.pearson[0][1] == pytest.approx(scipy.stats.pearsonr(*flat)[0])
    assert together.spearman[1][0] == pytest.approx(scipy.stats.spearmanr(*flat)[0])
    assert [reward.trained for reward in report.rewards] == [total.trained] * 2, "neither is independent of dt"
    # A document has the same figures.
    (fold,) = (fold for fold in document_of(report).folds if fold.title == "Rewards together")
    tables = {block.title: block for block in fold.blocks if isinstance(block, Grid)}
    shown = tables["our-dt: harmless by rm_score"]
    assert [(row[0].text, row[1].text) for row in shown.rows] == [("-5", "30.00"), ("0", "20.00"), ("5", "10.00")]
    assert "Sum of rewards both (z)" in tables
    assert tables["Pearson's r of rewards"].rows[0][2].text == f"{together.pearson[0][1]:.2f}"


def test_a_model_has_a_curve_for_each_guidance_and_none_of_the_best_of_its_answers(evaluated: Make) -> None:
    made = evaluated(prompts=4)
    dt = made.model("our-dt")
    rewards = {}
    for name, score, guidance, best_of in (
        ("dt_5", 5.0, 1.0, None),
        ("dt_-5", -5.0, 1.0, None),
        ("dt_5_w3", 5.0, 3.0, None),
        ("dt_-5_w3", -5.0, 3.0, None),
        ("dt_5_best_of_8", 5.0, 1.0, 8),
    ):
        decoding = {"guidance": guidance} | (
            {"best_of": {"n": best_of, "content_hash": "h", "reward": "r"}} if best_of else {}
        )
        score_asked = Condition.of({"rm_score": score})
        made.entrant(name, source="model", model_id=dt.id, score=score_asked, decoding=decoding)
        rewards[name] = [score * guidance] * 4
    made.rewards(rewards)
    (reward,) = made.report().rewards
    curves = [(curve.guidance, [point.achieved.value for point in curve.points]) for curve in reward.curves]
    assert curves == [(1.0, [-5.0, 5.0]), (3.0, [-15.0, 15.0])]


def test_a_sum_of_rewards_needs_all_its_reward_models_and_one_model_correlates_with_nothing(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    part = {"reward_source": "helpful", "reward_model_hash": "helpful-hash", "weight": 1.0} | {
        "mean": 1,
        "sd": 2,
        "n": 9,
    }
    other = part | {"reward_model_hash": "unknown"}
    dt = made.model("our-dt", info={"normaliser": {**Z, "parts": [part, other]}})
    made.entrant("dt", source="model", model_id=dt.id)
    made.rewards({"dt": [1.0, 2.0]}, name="helpful", content_hash="helpful-hash")
    report = made.report()
    assert (report.reward_sums, report.reward_correlations, report.rewards[0].curves) == ([], None, [])


def test_win_rates_at_like_length_leave_out_prompts_with_one_answer_much_longer(evaluated: Make) -> None:
    """dt is better on the first three of four prompts, and on the first two 1.5 and 1.6 times as long."""
    made = evaluated(prompts=4)
    made.entrant("sft", lengths={(0, 0): 100, (1, 0): 100, (2, 0): 100, (3, 0): 100})
    made.entrant("dt", lengths={(0, 0): 150, (1, 0): 160, (2, 0): 100, (3, 0): 70})
    better = {(0, 0): 3.0, (1, 0): 2.0, (2, 0): 2.0, (3, 0): 0.0}
    made.rewards({"sft": dict.fromkeys(better, 1.0), "dt": better})
    report = made.report()
    (pair,) = report.rewards[0].comparison.pairs
    assert (pair.a, pair.wins, pair.ties, pair.losses) == ("sft", 1, 0, 3)
    matched = pair.length_matched
    assert matched is not None
    # The prompts 0 and 2 (lost) and 3 (won): 70 characters are more than 100 / 1.5.
    assert (matched.n, matched.value) == (3, pytest.approx(1 / 3))
    row = next(row for row in report.methods if row.entrant == "dt")
    rates = row.reward_win_rate["reward"].value, row.reward_length_matched["reward"].value
    assert rates == (pytest.approx(3 / 4), pytest.approx(2 / 3))
    assert report.methods[0].reward_length_matched == {}


def test_the_length_adjusted_win_rate_is_over_all_prompts_whatever_their_lengths(evaluated: Make) -> None:
    made = evaluated(prompts=12)
    ours = [100 + 37 * n % 90 for n in range(12)]
    theirs = [100 + 53 * n % 140 for n in range(12)]
    won = [n % 3 != 1 for n in range(12)]
    made.entrant("sft", lengths={(n, 0): length for n, length in enumerate(ours)})
    made.entrant("dt", lengths={(n, 0): length for n, length in enumerate(theirs)})
    made.rewards(
        {"sft": {(n, 0): 1.0 for n in range(12)}, "dt": {(n, 0): 2.0 * is_won for n, is_won in enumerate(won)}}
    )
    report = made.report()
    (pair,) = report.rewards[0].comparison.pairs
    assert pair.a == "sft"
    wanted = length_adjusted([float(not is_won) for is_won in won], ours, theirs)
    assert wanted.value is not None
    assert pair.length_adjusted == wanted
    # The table of methods has it next to the length-matched one, as seen from the entrant.
    row = next(row for row in report.methods if row.entrant == "dt")
    assert row.reward_length_adjusted == {"reward": mirrored(wanted, 1.0)}
    assert row.reward_length_matched["reward"].n < 12
    assert report.methods[0].reward_length_adjusted == {}
    out = io.StringIO()
    print_evaluation_report(Console(file=out, width=200, color_system=None), report)
    lines = out.getvalue().splitlines()
    (heading,) = [line for line in lines if "length-matched" in line]
    assert heading.split("length-matched")[1].split() == ["length-adjusted"]
    assert any(line.startswith("dt") and line.rstrip().endswith(cell_of(mirrored(wanted, 1.0))) for line in lines)


def test_without_answers_of_like_length_there_is_no_win_rate_at_like_length(evaluated: Make) -> None:
    made = evaluated(prompts=2)
    made.entrant("sft", lengths={(0, 0): 100, (1, 0): 100})
    made.entrant("dt", lengths={(0, 0): 10, (1, 0): 10})
    made.rewards({"sft": {(0, 0): 1.0, (1, 0): 1.0}, "dt": {(0, 0): 2.0, (1, 0): 2.0}})
    (pair,) = made.report().rewards[0].comparison.pairs
    assert pair.length_matched is not None
    assert (pair.length_matched.n, pair.length_matched.value) == (0, None)
