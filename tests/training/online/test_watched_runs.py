"""Training that is watched: settings change at one step and stay changed, a pause loses nothing, health rules act."""

from __future__ import annotations

import json
import random

import pytest
import torch
from accelerate.state import AcceleratorState
from pydantic import TypeAdapter, ValidationError
from running import final_weights, forked, metrics_of, ran, recorded, weights_of
from scipy.stats import linregress

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.stage.events import Paused
from steerboard_contracts.watching.control import CONTROL_FILE, Change, Control
from steerboard_contracts.watching.health import (
    BothFallRule,
    HealthRule,
    HeldOutLossRule,
    JudgeRule,
    KlRule,
    OveroptimisationRule,
    ThresholdRule,
    UnusedConditionRule,
    ZeroZRule,
)
from steerboard_workers.stages import train
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.watching.health import HealthWatch, StoppedByHealthRule
from steerboard_workers.stages.training.watching.trend import line_of

CONFIG = {
    "run": "train",
    "method": "rloo",
    "rules": [{"kind": "regex", "pattern": "s"}],
    "batch": 4,
    "answers": 2,
    "epochs": 9,
    "max_length": 96,
    "max_new_tokens": 4,
    "checkpoint_seconds": 0,
    "checkpoint_every": 2,
    "lr": 1e-2,
    "warmup_ratio": 0,
    "max_steps": 6,
    "evaluate_rows": 2,
}


@pytest.fixture(scope="module")
def started(make_stage, base_model):
    def start(control: Control | None = None, **config) -> Stage:
        stage = make_stage({**CONFIG, **config}, model=base_model)
        ask(stage, control or Control())
        return stage

    return start


def ask(stage: Stage, control: Control) -> None:
    (stage.directory / CONTROL_FILE).write_text(control.model_dump_json())


def changing(step: int | None, **values: float) -> Control:
    return Control(changes=[Change(number=1, values=values, step=step)])


def test_a_change_is_in_force_from_its_step_on_and_part_of_the_lineage(started):
    plain, stage = started(), started(changing(4, lr=1e-3, kl_weight=2.0))
    before, after = ran(plain), ran(stage)
    for step in (1, 2, 3):
        assert after[step] == before[step]
    for step in (4, 5, 6):
        assert after[step]["lr"] == pytest.approx(before[step]["lr"] / 10)
    assert after[4]["reward"] == before[4]["reward"]  # the same answers, and another loss of them
    assert after[4]["grad_norm"] != before[4]["grad_norm"]
    (told,) = recorded(stage, "changed")
    assert (told.number, told.step, told.values) == (1, 4, {"lr": 1e-3, "kl_weight": 2.0})
    info = json.loads((stage.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert info["lineage"]["changed_settings"] == "lr 0.001, kl_weight 2 from step 4"
    about_plain = json.loads((plain.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert "changed_settings" not in about_plain["lineage"]


def test_beta_of_pairs_changes_at_its_step(make_stage, base_model):
    config = {**CONFIG, "method": "online_dpo", "answers": 4, "max_skipped": 1.0, "max_steps": 3}
    config.pop("kl_weight", None)
    plain, stage = (make_stage(config, model=base_model) for _ in range(2))
    ask(stage, changing(3, beta=5.0))
    before, after = ran(plain), ran(stage)
    assert (after[1], after[2]) == (before[1], before[2])
    assert after[3]["reward"] == before[3]["reward"]
    assert after[3]["loss"] != before[3]["loss"]


@pytest.mark.parametrize("kill_after", [3, pytest.param(5, marks=pytest.mark.long)])
def test_a_killed_run_changes_at_the_same_step_again(started, kill_after):
    """Killed before the checkpoint that has the change, and after it. The platform then knows the step."""
    control = changing(4, lr=1e-3)
    whole, stage = started(control), started(control)
    metrics = metrics_of(forked(whole, 1, None, random.Random(1)))
    forked(stage, 1, kill_after, random.Random(2))
    last = forked(stage, 2, None, random.Random(3))
    assert metrics_of(last) == metrics
    assert [event.step for event in last if event.type == "changed"] == [4]
    weights = final_weights(whole)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(stage).items())


def test_a_paused_run_goes_on_bit_for_bit(started):
    whole, stage = started(), started(Control(pause=True))
    first = run_once(stage, 1)
    assert isinstance(first, Paused)
    assert first.step == 0
    rule = [{"kind": "kl", "above": 1e-9, "steps": 2, "action": "pause"}]
    ask(stage, Control())
    paused = started(health=rule)
    ended = run_once(paused, 1)
    assert (ended.by_rule, ended.step) == ("kl", 3)  # the first KL is 0
    assert not (paused.directory / "outputs").exists()
    assert run_once(paused, 2).type == "succeeded"
    ran(whole)
    weights = weights_of(whole)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in weights_of(paused).items())


def run_once(stage: Stage, attempt: int):
    """The last word of an attempt in this process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    return train.run(Stage(stage.directory, stage.spec.model_copy(update={"attempt": attempt}), stage._events))


def test_a_rule_stops_the_run_which_is_no_success_unless_asked(started):
    rule = {"kind": "kl", "above": 1e-9, "steps": 1, "action": "stop"}
    stage = started(health=[rule])
    with pytest.raises(StoppedByHealthRule, match=r"stopped after step 2 by the rule kl: KL above 1e-09 nats, once"):
        ran(stage)
    (finding,) = recorded(stage, "health")
    assert (finding.step, finding.action) == (2, "stop")
    asked = started(health=[{**rule, "succeed": True}])
    ended = run_once(asked, 1)
    assert (ended.type, ended.summary["steps"], ended.summary["stopped_by"]) == ("succeeded", 2, "kl")
    assert "eval_reward" in ended.summary


# -- rules by their figures -------------------------------------------------------------------------------------------


def alarms(rule: object, lines: list[dict[str, float]]) -> list[int]:
    watch = HealthWatch([rule])
    return [finding.step for step, values in enumerate(lines, 1) for finding in watch.add(step, values)]


def test_a_rule_is_found_once_each_time_that_it_comes_to_hold():
    values = [9, 11, 11, 11, 11, 9, 11, 11]
    lines = [line for value in values for line in ({"kl": value}, {"loss": 1.0})]  # every other step samples
    assert alarms(KlRule(above=10, steps=2), lines) == [5, 15]


@pytest.mark.parametrize(
    ("rule", "name", "values", "step"),
    [
        ({"kind": "entropy", "below": 0.5, "steps": 2}, "entropy", [2.0, 0.9, 1.1, 0.9, 0.8], 5),
        ({"kind": "router_collapse", "below": 0.5, "steps": 2}, "experts_used_min", [0.9, 0.4, 0.5, 0.4, 0.44], 5),
        ({"kind": "clip_share", "steps": 1}, "clip_share", [0.3, 0.31], 2),
        ({"kind": "tied_groups", "steps": 2}, "equal_groups", [1.0, 0.9, 1.0, 1.0, 1.0], 4),
        ({"kind": "threshold", "figure": "eval_loss", "above": 1.2}, "eval_loss", [1.2, 1.1, 1.3, 1.4], 3),
        ({"kind": "threshold", "figure": "lr", "below": 0.1, "steps": 2}, "lr", [0.05, 0.1, 0.09, 0.08], 4),
        ({"kind": "threshold", "figure": "x", "above": 2, "below": -1, "steps": 2}, "x", [3, -2, 0, -2, -3], 5),
        ({"kind": "zero_z", "steps": 3}, "z", [0.0, 0.0, 1e-6, 0.0, 0.0, 0.0, 0.0], 6),
    ],
)
def test_each_rule_reads_its_figure(rule, name, values, step):
    assert alarms(TypeAdapter(HealthRule).validate_python(rule), [{name: value} for value in values]) == [step]


@pytest.mark.parametrize("bounds", [{}, {"above": 1.0, "below": 1.0}, {"above": 1.0, "below": 2.0}])
def test_a_threshold_needs_a_bound_and_a_range_inside(bounds):
    with pytest.raises(ValidationError, match=r"give `above` or `below`|`below` must be less than `above`"):
        ThresholdRule(figure="loss", **bounds)


def test_a_run_without_the_figure_of_a_threshold_warns_of_it_at_its_end(started):
    rules = [{"kind": "threshold", "figure": name, "above": 1e9} for name in ("eval_rewards", "loss", "speed")]
    stage = started(health=rules)
    ran(stage)
    (warning,) = recorded(stage, "prepared")[-1].warnings
    assert warning.code == "unwatched_figure"
    assert "`eval_rewards` (perhaps `eval_reward`)" in warning.message
    assert warning.message.endswith("`speed`.")


def test_a_reward_that_rises_while_the_judge_falls_is_found():
    def line(reward: float, judge: float | None = None) -> dict[str, float]:
        return {"reward": reward} | ({} if judge is None else {"eval_reward_model_2": judge})

    rule = JudgeRule(judge="eval_reward_model_2", falls=2)
    rising = [line(1), line(1, 5), line(2), line(2, 4), line(3), line(3, 3)]
    assert alarms(rule, rising) == [6]
    assert alarms(rule, [*rising[:-2], line(0), line(0, 3)]) == []  # the reward falls, too
    assert alarms(rule, [*rising[:-1], line(3, 4)]) == []  # the judge no longer falls


@pytest.mark.parametrize(
    ("rewards", "judged", "found"),
    [
        ((0, 1, 2, 3, 4, 5), (5, 6, 4, 5, 6, 4), True),  # the judge stays where it is
        ((0, 1, 2, 3, 4, 5), (5, 4, 4, 3, 3, 2), True),  # it falls
        ((0, 1, 2, 3, 4, 5), (4, 5, 4, 5, 5, 6), False),  # it rises too
        ((5, 0, 5, 0, 5, 4), (5, 4, 4, 3, 3, 2), False),  # no rise of the reward that is beyond its noise
        ((5, 4, 3, 2, 1, 0), (5, 4, 4, 3, 3, 2), False),
    ],
)
def test_a_reward_that_rises_while_an_independent_judge_does_not_is_found(rewards, judged, found):
    """The judge has a figure at every second step."""
    rule = OveroptimisationRule(figures=6)
    lines = []
    for reward, judgement in zip(rewards, judged, strict=True):
        lines += [{"reward": float(reward)}, {"reward": float(reward), "independent_reward": float(judgement)}]
    assert alarms(rule, lines) == ([12] if found else [])
    assert alarms(rule, lines[:-1]) == []  # a figure less than it needs


def test_a_trend_is_the_line_of_scipy():
    values = [0.3, 1.2, 0.9, 2.5, 2.2, 3.1, 2.4]
    fitted = linregress(range(7), values)
    assert line_of(values) == pytest.approx((fitted.slope, fitted.stderr))


SIDES = ("eval_chosen_log_prob", "eval_rejected_log_prob")


def evaluated(*figures: tuple[float, float, float], of: str = "eval_pair_accuracy") -> list[dict[str, float]]:
    """Evaluations every other step: log-probs of chosen and rejected answers, and a figure of the pairs."""
    looks = ({"loss": 1.0, **dict(zip((*SIDES, of), row, strict=True))} for row in figures)
    return [line for look in looks for line in ({"loss": 1.0}, look)]


def test_sides_that_both_fall_past_the_floor_while_pairs_are_told_apart_less_well_are_found_once():
    rule = BothFallRule(floor=10, steps=2)
    start = (-50.0, -60.0, 0.7)
    falling = [start, (-55, -65, 0.8), (-61, -71, 0.7), (-62, -72, 0.6)]
    assert alarms(rule, evaluated(*falling, (-63, -73, 0.5))) == [8]
    assert alarms(rule, evaluated(*falling[:3])) == []  # the accuracy fell only once
    assert alarms(rule, evaluated(*falling[:-1], (-62, -72, 0.7))) == []  # it does not fall
    for side in range(2):  # one side alone falls, or is not past the floor each time
        for kept in (-50.0, -59.0):
            pinned = [tuple(kept if place == side else value for place, value in enumerate(line)) for line in falling]
            assert alarms(rule, evaluated(falling[0], *pinned[1:])) == []
    early = [start, (-55, -65, 0.8), (-59, -71, 0.7), (-62, -72, 0.6)]
    assert alarms(rule, evaluated(*early)) == []
    assert alarms(rule, evaluated(*early, (-63, -73, 0.5))) == [10]


def test_sides_that_both_fall_can_be_judged_by_the_margin():
    lines = evaluated((-50, -60, 1.0), (-90, -99, 0.9), (-95, -99, 0.8), of="eval_margin")
    assert alarms(BothFallRule(figure="eval_margin"), lines) == [6]
    assert alarms(BothFallRule(), lines) == []


def test_sides_without_log_probs_as_of_a_reward_model_are_never_found_to_fall():
    assert alarms(BothFallRule(), [{"eval_pair_accuracy": value} for value in (0.7, 0.6, 0.5, 0.4)]) == []


def gains(*lows: float | None, ends: bool = False) -> list[dict[str, float]]:
    """Evaluations by the lower ends of their gains' intervals. `ends`: the last is that of the run's end."""
    name = "eval_condition_gain_shuffled"
    lines = [{name: 0.2, f"{name}_high": 0.5} | ({} if low is None else {f"{name}_low": low}) for low in lows]
    return [*lines[:-1], lines[-1] | ({"eval_condition_gain_mixture": 0.1} if ends else {})]


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        (gains(-0.1, -0.1, -0.1, -0.1), [3]),
        (gains(-0.1, 0.1, 0.0, 0.1, -0.1), [3, 5]),
        (gains(-0.1, -0.1), []),  # it may not be used yet
        (gains(-0.1, ends=True), [1]),
        (gains(0.1, -0.1, ends=True), [2]),
        (gains(0.1, 0.1, ends=True), []),
        (gains(-0.1, -0.1, 0.1, 0.1), []),
        (gains(None, None, None, ends=True), []),
    ],
)
def test_a_condition_whose_gain_may_be_nothing_from_the_third_evaluation_on_or_in_the_end_is_unused(lines, steps):
    assert alarms(UnusedConditionRule(), lines) == steps


def test_from_which_evaluation_on_a_condition_should_be_used_can_be_set():
    assert alarms(UnusedConditionRule(from_evaluation=1), gains(-0.1, -0.1)) == [1]
    assert alarms(UnusedConditionRule(from_evaluation=4), gains(-0.1, -0.1, -0.1, 0.1, -0.1)) == [5]


def test_every_conditional_method_watches_whether_its_condition_is_used():
    conditional = [spec for spec in methods().values() if spec.condition is not None]
    assert conditional
    assert all(spec.config(method=spec.name).health == [UnusedConditionRule()] for spec in conditional)


def test_a_held_out_loss_that_rises_so_many_times_in_a_row_is_found():
    def losses(*values: float) -> list[dict[str, float]]:
        return [line for value in values for line in ({"loss": 1.0}, {"loss": 1.0, "eval_loss": value})]

    rule = HeldOutLossRule(rises=2)
    assert alarms(rule, losses(3.0, 2.0, 2.1, 2.2, 2.3)) == [8]
    assert alarms(rule, losses(3.0, 2.0, 2.1, 2.1, 2.2)) == []
    assert alarms(rule, losses(2.0, 2.1)) == []
    assert alarms(HeldOutLossRule(rises=1), losses(2.0, 2.1, 2.0, 2.1)) == [4, 8]


def test_methods_of_pairs_watch_both_sides_and_kto_its_z_by_default():
    of_pairs = ("dpo", "cdpo", "robust_dpo", "hinge", "ipo", "mpo", "simpo", "orpo")
    for rule, names in ((BothFallRule(), of_pairs), (ZeroZRule(), ("kto",))):
        for method in names:
            assert needed_method(method).config(method=method).health == [rule]
            assert rule.action == "note"
    assert needed_method("sft").config(method="sft").health == []
