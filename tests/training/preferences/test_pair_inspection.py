"""What a run keeps of its pairs, or of answers with a thumb, at each evaluation is what its metrics were computed of,
token by token."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from accelerate.state import AcceleratorState
from running import metrics_of, recorded

from steerboard_contracts.stage.events import Inspected
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.watching.inspected_pairs import INDEX_FILE, MOST_STEPS, PairsIndex, StepPairs, step_file
from steerboard_workers.alignment.token_texts import token_texts
from steerboard_workers.stages import train
from steerboard_workers.stages.runtime import Stage

QUICK = {"run": "train", "batch": 20, "max_steps": 4, "lr": 2e-3, "max_length": 96, "epochs": 10, "evaluate_every": 2}
CONFIGS = {
    "dpo": {"beta": 0.3},
    "simpo": {},
    "orpo": {"sft_on": "sequence"},
    "reward_model": {},
}


@pytest.fixture
def run(make_stage, base_model):
    def start(method: str, reference: Path | None = None, stage: Stage | None = None, **config) -> Stage:
        AcceleratorState._reset_state(reset_partial_state=True)
        if stage is None:
            given = {**QUICK, "checkpoint_every": 0, "method": method, **CONFIGS[method], **config}
            stage = make_stage(given, model=base_model, data="preferences")
        if reference:
            inputs = {**stage.spec.inputs, "reference": ModelInput(name="r", path=str(reference), content_hash="f")}
            stage = Stage(stage.directory, stage.spec.model_copy(update={"inputs": inputs}), stage._events)
        train.run(stage)
        return stage

    return start


def thumbs(make_stage, base_model, data: str, **config) -> Stage:
    AcceleratorState._reset_state(reset_partial_state=True)
    given = {**QUICK, "checkpoint_every": 0, "method": "kto", **config}
    stage = make_stage(given, model=base_model, data=data)
    train.run(stage)
    return stage


def kept(stage: Stage) -> tuple[PairsIndex, dict[int, StepPairs]]:
    folder = stage.directory / "outputs" / "pairs"
    index = PairsIndex.model_validate_json((folder / INDEX_FILE).read_bytes())
    return index, {step: StepPairs.model_validate_json((folder / step_file(step)).read_bytes()) for step in index.steps}


@pytest.mark.parametrize("method", CONFIGS)
def test_margins_of_the_held_out_pairs_are_those_of_the_metrics(run, data_folder, method):
    stage = run(method)
    index, steps = kept(stage)
    metrics = metrics_of(recorded(stage, "metrics"))
    held_out = [place for place, pair in enumerate(index.pairs) if pair.split == "held_out"]
    assert (len(held_out), len(index.pairs) - len(held_out)) == (20, 64)
    assert list(steps) == [2, 4]
    for step, pairs in steps.items():
        margins = np.array(pairs.chosen_rewards) - np.array(pairs.rejected_rewards)
        assert margins[held_out].mean() == pytest.approx(metrics[step]["eval_margin"], rel=1e-4, abs=1e-6)
        right = (margins[held_out] > 0).mean()
        assert right == pytest.approx(metrics[step]["eval_pair_accuracy"], abs=1e-6)
    rows = [json.loads(line) for line in (data_folder / "preferences.jsonl").read_text().splitlines()]
    for pair in index.pairs:
        assert rows[pair.row]["split"] == pair.split
        assert rows[pair.row]["chosen"] in "".join(pair.chosen)


def test_a_token_s_log_ratio_is_its_share_of_the_reward_relative_to_the_run_s_reference(run, other_model):
    for reference in (None, other_model):
        index, steps = kept(run("dpo", reference=reference, max_steps=2))
        assert index.compared_with == "reference"
        for place, pair in enumerate(index.pairs):
            ratios = steps[2].chosen_log_ratios[place]
            assert len(ratios) == len(pair.chosen)
            assert 0.3 * sum(ratios) == pytest.approx(steps[2].chosen_rewards[place], abs=2e-3)
    assert any(abs(sum(ratios)) > 0.1 for ratios in steps[2].chosen_log_ratios)


@pytest.mark.parametrize("data", ["unpaired", "preferences"])
def test_a_single_answer_s_margin_is_its_log_ratio_turned_where_it_is_undesirable(
    make_stage, base_model, data_folder, data
):
    stage = thumbs(make_stage, base_model, data, beta=0.3, reduction="mean" if data == "preferences" else "sum")
    index, steps = kept(stage)
    metrics = metrics_of(recorded(stage, "metrics"))
    rows = [json.loads(line) for line in (data_folder / f"{data}.jsonl").read_text().splitlines()]
    assert index.compared_with == "reference"
    assert {pair.split for pair in index.pairs} == {"held_out", "train"}
    for step, pairs in steps.items():
        good = [
            reward for pair, reward in zip(index.pairs, pairs.chosen_rewards, strict=True) if pair.split == "held_out"
        ]
        bad = [
            reward for pair, reward in zip(index.pairs, pairs.rejected_rewards, strict=True) if pair.split == "held_out"
        ]
        for kind, rewards in (("desirable", good), ("undesirable", bad)):
            given = [reward for reward in rewards if reward is not None]
            assert bool(given) == (f"eval_reward_{kind}" in metrics[step])
            if given:
                expected = metrics[step][f"eval_reward_{kind}"]
                assert 0.3 * np.mean(given) == pytest.approx(expected, rel=1e-3, abs=1e-5)
    last = steps[4]
    for place, pair in enumerate(index.pairs):
        desirable = pair.rejected is None
        assert (pair.chosen is None) != desirable
        row = rows[pair.row]
        text, reward, other, ratios = (
            (pair.chosen, last.chosen_rewards[place], last.rejected_rewards[place], last.chosen_log_ratios[place])
            if desirable
            else (
                pair.rejected,
                last.rejected_rewards[place],
                last.chosen_rewards[place],
                last.rejected_log_ratios[place],
            )
        )
        assert other is None
        assert len(ratios) == len(text)
        if data == "unpaired":
            assert desirable == row["desirable"]
            assert row["response"] in "".join(text)
            assert sum(ratios) == pytest.approx(reward, abs=1e-2)
        else:
            assert row["chosen" if desirable else "rejected"] in "".join(text)
            assert sum(ratios) / len(ratios) == pytest.approx(reward, abs=1e-2)


def test_the_newest_step_is_told_pair_by_pair_while_the_run_goes_on(run):
    stage = run("dpo", inspect_pairs=3)
    index, steps = kept(stage)
    told = [Inspected.model_validate(event.model_dump()) for event in recorded(stage, "inspected")]
    assert [(event.step, event.place) for event in told] == [(step, place) for step in (2, 4) for place in range(6)]
    for event in told:
        assert event.found.pair == index.pairs[event.place]
        assert event.found.chosen_reward == steps[event.step].chosen_rewards[event.place]
        assert event.found.rejected_log_ratios == steps[event.step].rejected_log_ratios[event.place]


def test_a_run_that_resumes_has_the_steps_before_and_changes_none(run):
    whole = kept(run("dpo"))
    stage = run("dpo", max_steps=4, checkpoint_every=3)
    # The attempt that ended after the checkpoint of step 3 left no outputs.
    (stage.directory / "outputs" / "pairs" / INDEX_FILE).unlink()
    again = run("dpo", stage=stage)
    assert any("resumed from step 3" in event.message for event in recorded(again, "log"))
    assert kept(again) == whole
    # What was known when it resumed comes first.
    assert [event.step for event in recorded(again, "inspected")][-2 * 84 :: 84] == [2, 4]


def test_what_is_kept_is_bounded(run):
    stage = run("dpo", max_steps=MOST_STEPS + 2, evaluate_every=1, inspect_pairs=3)
    index, steps = kept(stage)
    assert len(index.pairs) == 6
    assert len(steps) <= MOST_STEPS
    assert max(steps) == MOST_STEPS + 2
    none = run("dpo", max_steps=1, inspect_pairs=0)
    assert not (none.directory / "outputs" / "pairs").exists()


def test_tokens_that_are_parts_of_a_character_show_it_once():
    class Bytes:
        def decode(self, ids, **_):
            return bytes(ids).decode(errors="replace")

    assert token_texts(Bytes(), np.frombuffer("aé€!".encode(), dtype=np.uint8)) == ["a", "", "é", "", "", "€", "!"]
