"""A model that is trained to compare responses: what it learns, how a run measures it, and who may use it."""

from __future__ import annotations

import json
import math
from itertools import combinations

import pytest
from running import RecordingWriter, ran

from steerboard_contracts.errors import BadInput
from steerboard_contracts.stage.spec import StageSpec
from steerboard_statistics.benchmarks.rewardbench import SECTIONS, WEIGHTS
from steerboard_workers.alignment.losses import calibration_error
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.stages import benchmark
from steerboard_workers.stages.models.comparing import compare, preference_engine
from steerboard_workers.stages.models.model_io import load_comparing_model, load_reward_model
from steerboard_workers.stages.runtime import Stage

QUICK = {
    "run": "train",
    "method": "preference_model",
    "batch": 8,
    "epochs": 30,
    "lr": 3e-3,
    "max_length": 128,
    "checkpoint_every": 0,
    "max_steps": 3,
}


@pytest.fixture(scope="module")
def learned(make_stage, base_model):
    """A stage that has learned for a while, and its metrics."""
    stage = make_stage({**QUICK, "max_steps": 60}, model=base_model, data="preferences")
    return stage, ran(stage)


def test_it_starts_at_the_loss_of_a_uniform_vocabulary_and_learns_the_verdict(learned):
    steps = learned[1]
    assert steps[1]["loss"] == pytest.approx(math.log(400), rel=0.15)  # random weights
    # Which of two the coin has put in front cannot be guessed: ln 2 is what knowing the two verdicts alone gives.
    assert steps[60]["loss"] < 1.2
    assert {"verdict_accuracy", "eval_loss", "eval_pair_accuracy", "eval_flip_rate", "eval_calibration_error"} <= set(
        steps[60]
    )
    assert "pair_accuracy" not in steps[60]


def test_the_runs_figures_are_those_of_the_saved_model_in_both_orders(learned, data_folder):
    stage, steps = learned
    folder = stage.directory / "outputs" / "model"
    info = json.loads((folder / "steerboard.json").read_text())
    assert (info["role"], info["method"]) == ("preference", "preference_model")
    rows = [json.loads(line) for line in (data_folder / "preferences.jsonl").read_text().splitlines()]
    held_out = [row for row in rows if row["split"] == "held_out"]
    engine = preference_engine(load_comparing_model(folder, "fp32", "cpu"))
    preferences = compare(engine, [Comparison(row["prompt"], row["chosen"], row["rejected"]) for row in held_out])
    p = [preference.p for preference in preferences]
    last = steps[60]
    assert last["eval_pair_accuracy"] == pytest.approx(sum(value > 0.5 for value in p) / len(p))
    assert last["eval_flip_rate"] == pytest.approx(sum(preference.flips for preference in preferences) / len(p))
    assert last["eval_calibration_error"] == pytest.approx(calibration_error(p), abs=1e-4)
    assert info["summary"]["held_out_accuracy"] == last["eval_pair_accuracy"]
    assert info["summary"]["pairs"] == len(held_out)


@pytest.mark.parametrize("split", [{"micro_batch": 3}, {"batching": "packed"}])
def test_loss_and_gradient_do_not_depend_on_how_a_batch_is_split(make_stage, base_model, split):
    def figures(**config) -> list[float]:
        steps = ran(make_stage({**QUICK, **config}, model=base_model, data="preferences"))
        return [v[name] for _, v in sorted(steps.items()) for name in ("loss", "grad_norm")] + [steps[3]["eval_loss"]]

    assert figures(**split) == pytest.approx(figures(batching="padded"), rel=2e-4)


def test_a_model_that_compares_is_no_reward_model_and_the_other_way_round(learned, make_stage, base_model):
    with pytest.raises(BadInput, match="compares two responses") as refused:
        load_reward_model(learned[0].directory / "outputs" / "model")
    assert refused.value.code == "wrong_role"
    with pytest.raises(BadInput, match="not trained to compare") as refused:
        load_comparing_model(base_model)
    assert refused.value.code == "wrong_role"


def benchmarked(folder, at, kind, rows, times):
    """What each of these attempts of one run ends with."""
    (at / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"type": "dataset", "name": "p", "path": str(at / "rows.jsonl"), "kind": kind}
    written = {
        "run_id": "r",
        "name": "bench",
        "config": {"run": "benchmark"},
        "device": "cpu",
        "threads": 1,
        "inputs": {
            "reward": {"type": "model", "name": "m", "path": str(folder), "content_hash": "m"},
            "pairs": {**data, "rows": len(rows), "content_hash": "d"},
        },
    }
    return [benchmark.run(Stage(at, StageSpec.model_validate(written), RecordingWriter())) for _ in range(times)]


def test_a_benchmark_asks_it_in_both_orders(learned, tmp_path):
    """RewardBench's subsets, equal texts as ties, and a second attempt that has nothing left to ask."""
    folder = learned[0].directory / "outputs" / "model"
    prompt = [{"role": "user", "content": "bread?"}]
    texts = [("flour water salt yeast", "cake"), ("sky", "bake mix bread oven"), ("egg", "egg")]
    sides = [
        (subset, *(pair if (place + number) % 2 else pair[::-1]))
        for place, subset in enumerate(WEIGHTS)
        for number, pair in enumerate(texts[: 1 + place % 3])
    ]
    rows = [{"prompt": prompt, "chosen": a, "rejected": b, "source": subset} for subset, a, b in sides]
    done = benchmarked(folder, tmp_path, "preferences", rows, times=2)
    engine = preference_engine(load_comparing_model(folder, "fp32", "cpu"))
    preferences = compare(engine, [Comparison(prompt, a, b) for _, a, b in sides])
    summary = done[0].summary
    assert summary["accuracy"] == pytest.approx(sum(preference.p > 0.5 for preference in preferences) / len(rows))
    assert (summary["pairs"], summary["ties"]) == (len(rows), sum(a == b for _, a, b in sides))
    assert summary["flip_rate"] == pytest.approx(sum(preference.flips for preference in preferences) / len(rows))
    assert summary["calibration_error"] == pytest.approx(
        calibration_error([preference.p for preference in preferences]), abs=1e-5
    )
    assert (summary["resumed_rows"], done[1].summary["resumed_rows"]) == (0, len(rows))

    wins = {
        subset: [preference.p > 0.5 for (of, _, _), preference in zip(sides, preferences, strict=True) if of == subset]
        for subset in WEIGHTS
    }
    shares = {subset: sum(won) / len(won) for subset, won in wins.items()}
    by_hand = {
        section: sum(shares[name] * WEIGHTS[name] for name in subsets) / sum(WEIGHTS[name] for name in subsets)
        for section, subsets in SECTIONS.items()
    }
    assert len(set(by_hand.values())) == 4
    bench = json.loads((tmp_path / done[0].outputs[0].path).read_text())["rewardbench"]
    assert bench["sections"] == pytest.approx(by_hand)
    assert bench["overall"] == pytest.approx(sum(by_hand.values()) / 4)
    assert (summary["rewardbench"], summary["rewardbench_chat_hard"]) == (
        bench["overall"],
        bench["sections"]["Chat Hard"],
    )


def test_a_benchmark_of_several_answers_is_a_tournament_of_them(learned, tmp_path):
    """Each answer's score is its mean probability to win; the right one is that with the highest grade."""
    folder = learned[0].directory / "outputs" / "model"
    prompt = [{"role": "user", "content": "bread?"}]
    answers = ["flour water salt yeast", "cake", "bake mix bread oven", "sky"]
    rows = [
        {"prompt": prompt, "response": text, "reward": float(place == right), "source": "Math", "group": right}
        | {"candidate": place}
        for right in range(4)
        for place, text in enumerate(answers)
    ]
    done = benchmarked(folder, tmp_path, "labelled", rows, times=2)
    pairs = list(combinations(range(4), 2))
    engine = preference_engine(load_comparing_model(folder, "fp32", "cpu"))
    preferences = compare(engine, [Comparison(prompt, answers[a], answers[b]) for a, b in pairs])
    wins = [0.0] * 4
    for (a, b), compared in zip(pairs, preferences, strict=True):
        wins[a] += compared.p
        wins[b] += 1 - compared.p
    assert len(set(wins)) == 4
    summary = done[0].summary
    # One of the four is the favourite, whatever is asked.
    assert (summary["prompts"], summary["accuracy"], summary["ties"]) == (4, 0.25, 0)
    best = wins.index(max(wins))
    candidates = [row for row in rows if row["group"] == best]
    (tmp_path / "one").mkdir()
    assert benchmarked(folder, tmp_path / "one", "labelled", candidates, times=1)[0].summary["accuracy"] == 1
    assert summary["flip_rate"] == pytest.approx(sum(preference.flips for preference in preferences) / len(preferences))
    assert (summary["resumed_rows"], done[1].summary["resumed_rows"]) == (0, 24)
