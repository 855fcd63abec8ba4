"""Methods that learn from pairs, as whole stages: where they start, what they learn, which pairs they leave out."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from accelerate.state import AcceleratorState
from running import data_of, metrics_of, recorded, weights_of, with_config, with_others

from steerboard_contracts.methods import needed_method
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.stages import train
from steerboard_workers.stages.runtime import Stage

QUICK = {
    "run": "train",
    "batch": 20,
    "epochs": 10,
    "max_steps": 6,
    "lr": 2e-3,
    "checkpoint_every": 0,
    "max_length": 96,
    "warmup_ratio": 0.0,
}
LN_2 = math.log(2)
# The first loss of a policy that is its reference.
FIRST = {"dpo": LN_2, "ipo": 25.0}
# The others differ in their loss alone, which tests/alignment has.
CONFIGS = {"dpo": {}, "ipo": {}, "simpo": {"lr": 1e-2}, "orpo": {"lr": 1e-2, "beta": 5.0}}


@pytest.fixture
def trained(make_stage, base_model):
    """trained(method, reference=None, cache=None, data=..., model=..., **config) -> (stage, succeeded)."""

    def run(
        method,
        reference: Path | None = None,
        cache: Path | None = None,
        data="preferences",
        run_id="r",
        model=base_model,
        **config,
    ):
        AcceleratorState._reset_state(reset_partial_state=True)
        caches = {"reference": str(cache)} if cache else {}
        stage = make_stage({**QUICK, "method": method, **config}, model=model, data=data, caches=caches, run_id=run_id)
        if reference:
            given = ModelInput(name="reference", path=str(reference), content_hash="f")
            inputs = {**stage.spec.inputs, "reference": given}
            stage = Stage(stage.directory, stage.spec.model_copy(update={"inputs": inputs}), stage._events)
        return stage, train.run(stage)

    return run


def steps_of(stage: Stage) -> dict[int, dict[str, float]]:
    return metrics_of(recorded(stage, "metrics"))


def logged(stage: Stage) -> list[str]:
    return [event.message for event in recorded(stage, "log")]


@pytest.mark.parametrize("method", CONFIGS)
def test_every_pair_method_learns_which_side_is_chosen(trained, method):
    """The longer answers are: means and odds of log-probs learn that as well as sums do."""
    stage, done = trained(method, **CONFIGS[method])
    steps = steps_of(stage)
    first, last = steps[1], steps[6]
    if method in FIRST:
        assert first["loss"] == pytest.approx(FIRST[method], rel=1e-4)
        assert first["pair_accuracy"] == 0.5
        assert first["margin"] == pytest.approx(0, abs=1e-4)
    assert last["loss"] < first["loss"]
    assert last["margin"] > first["margin"]
    assert last["pair_accuracy"] >= first["pair_accuracy"]
    assert {"chosen_reward", "rejected_reward", "chosen_log_prob", "rejected_log_prob", "length_gap"} <= set(last)
    assert {"eval_chosen_log_prob", "eval_rejected_log_prob", "eval_margin"} <= set(last)  # what `both_fall` reads
    assert last["length_gap"] > 5
    assert done.outputs[0].role == "policy"
    assert done.summary["pairs"] == 20
    assert done.summary["held_out_accuracy"] == last["eval_pair_accuracy"]
    for name in ("empty_pairs", "equal_pairs", "tied_pairs", "dropped_rows", "truncated_rows"):
        assert done.summary[name] == 0


@pytest.mark.parametrize("where", ["model", "adapters"])
def test_the_first_step_finds_the_policy_at_its_reference_whatever_its_dropout(trained, base_model, tmp_path, where):
    """Which is off, mentioned in the log, and kept in the config of the model that comes out."""
    folder = with_config(base_model, tmp_path / "model", attention_dropout=0.3)
    given = {"model": folder} if where == "model" else {"lora": {"rank": 4, "dropout": 0.5}}
    stage, _ = trained("dpo", max_steps=2, warmup_ratio=0.0, **given)
    steps = steps_of(stage)
    assert steps[1]["loss"] == pytest.approx(LN_2, abs=1e-6)
    assert steps[1]["pair_accuracy"] == 0.5
    assert steps[2]["loss"] != pytest.approx(LN_2, abs=1e-4)
    assert any("dropout is off: dpo compares" in line for line in logged(stage))
    if where == "model":
        saved = json.loads((stage.directory / "outputs" / "model" / "config.json").read_text())
        assert saved["attention_dropout"] == 0.3


def test_a_policy_moves_away_from_a_reference_of_its_own(trained, other_model):
    """The log-probs are of the input, and the first step is not one of differences of nothing."""
    stage, _ = trained("dpo", reference=other_model, max_steps=1)
    assert abs(steps_of(stage)[1]["margin"]) > 1e-3


def test_methods_on_the_same_pairs_pay_for_the_reference_once(trained, other_model, tmp_path):
    """Whatever the method, reduction or beta. What they learn is what they learn without the cache, and what the
    log-probs cost is known of both."""
    lines, costs = {}, []
    for method, config in (("dpo", {}), ("mpo", {"beta": 0.3, "reduction": "mean"})):
        stage, done = trained(
            method, reference=other_model, cache=tmp_path / "cache", run_id=method, max_steps=1, **config
        )
        costs.append([done.summary[name] for name in ("log_prob_seconds", "log_prob_seconds_shared")])
        lines[method] = next(line for line in logged(stage) if line.startswith("log-probs of reference"))
    known = {method: line.split()[3] == line.split()[5] for method, line in lines.items()}
    assert known == {"dpo": False, "mpo": True}
    seconds = costs[0][0]
    assert seconds > 0
    assert costs == [[seconds, 0.0], [seconds, seconds]]
    alone = trained("mpo", reference=other_model, max_steps=1, beta=0.3, reduction="mean")[0]
    assert all((tensor == weights_of(alone)[name]).all() for name, tensor in weights_of(stage).items())


@pytest.mark.parametrize(("name", "config"), [("dpo", {}), ("orpo", {"sft_on": "sequence"})])
def test_sharing_prompts_changes_no_step_beyond_rounding(trained, name, config):
    shared, apart = (steps_of(trained(name, share_prompt=share, **config)[0]) for share in (True, False))
    for step, values in shared.items():
        for figure in ("loss", "grad_norm", "margin"):
            assert values[figure] == pytest.approx(apart[step][figure], rel=2e-4, abs=1e-5), (step, figure)


@pytest.mark.parametrize("method", with_others(["dpo"]))
def test_splitting_a_batch_changes_no_step_beyond_rounding(trained, method):
    apart = {"share_prompt": False} if "share_prompt" in needed_method(method).config.model_fields else {}
    whole, *parts = (
        steps_of(trained(method, data=data_of(method), max_steps=2, **split)[0])
        for split in ({}, {"micro_batch": 1, "batching": "padded", **apart}, {"batching": "packed"})
    )
    for step, name in itertools.product((1, 2), ("loss", "grad_norm")):
        both = [part[step][name] for part in parts]
        assert both == pytest.approx([whole[step][name]] * 2, rel=2e-4, abs=1e-5), (step, name)


def test_pairs_of_which_nothing_can_be_learned_are_left_out_and_counted(trained, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "preferences.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["split"] == "train"]
    for row in rows[:2]:
        row["rejected"] = row["chosen"] + " "
    rows[2]["chosen"] = "  "
    for row in rows[3:6]:
        row["margin"] = 0.0
    rows[6]["margin"] = 1.5
    same = "bread " * 150
    rows[7] |= {"chosen": same + "cake", "rejected": same + "salt"}
    rows[8]["chosen"] = same
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stage, done = trained("dpo", data=str(path), max_steps=1)
    counts = {name: done.summary[name] for name in ("empty_pairs", "equal_pairs", "tied_pairs", "truncated_rows")}
    # Two equal sides as they are, and one where both were cut; the pair that is cut on one side is learned.
    assert counts == {"empty_pairs": 1, "equal_pairs": 3, "tied_pairs": 3, "truncated_rows": 1}
    assert done.summary["rows"] == len(rows) - 4
    assert done.summary["dropped_rows"] == 1
    assert any("1 pairs with an empty side" in line for line in logged(stage))


def test_earlier_turns_are_no_part_of_what_is_compared(trained):
    """A prompt with assistant turns of its own: log-probs are those of the last answers alone."""
    method = needed_method("dpo")
    with pytest.raises(ValueError, match="learn"):
        method.config(method="dpo", learn="all")
    stage, _ = trained("dpo", max_steps=1, batch=200, lr=1e-9)
    first = steps_of(stage)[1]
    # Random weights: every token costs about ln of the vocabulary's 400.
    tokens = -first["chosen_log_prob"] / math.log(400)
    assert first["chosen_nll"] == pytest.approx(math.log(400), rel=0.05)
    assert tokens - -first["rejected_log_prob"] / math.log(400) == pytest.approx(first["length_gap"], rel=0.1)
