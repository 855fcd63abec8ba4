"""What `make bench-claim` makes of the ledgers of its runs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steerboard_contracts.watching.ledger import Ledger

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
# A seed of `bench-claim --quick`, as the API gave it: ledgers, metrics of each step, scores.
RECORD = Path(__file__).with_name("claim_record.json")
TOKENS = 3_000
ABOUT = {
    "machine": {"cores": 2, "load": [0.1, 0.1, 0.1], "load_after": [2.5, 2.0, 1.0]},
    "seconds": 100.0,
    "sweep": {"tried": [{"lr": 1e-4, "judge": 0.5, "reward": 0.6, "seconds": 10.0}], "chosen": 1e-4, "seconds": 10.0},
}


@pytest.fixture
def claim(monkeypatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import claim
    from contests import claim_costs, claim_document, claim_platform, claim_words

    return SimpleNamespace(
        script=claim, costs=claim_costs, document=claim_document, platform=claim_platform, words=claim_words
    )


@pytest.fixture
def recorded(claim) -> Any:
    """The outcome of the seed."""
    record = json.loads(RECORD.read_text())
    ledgers = {name: Ledger.model_validate(document) for name, document in record.pop("ledgers").items()}
    return claim.platform.SeedResult(ledgers=ledgers, **record)


def sizes(claim: SimpleNamespace, *, quick: bool = True) -> Any:
    """The sizes of the record."""
    return claim.platform.Sizes(samples=128, reach=2, looks=2, quick=quick)


def ledger(seconds: float, **phases: tuple[float, int]) -> Ledger:
    listed = [{"phase": name, "device_seconds": spent, "tokens": tokens} for name, (spent, tokens) in phases.items()]
    return Ledger.model_validate({"phases": listed, "device_seconds": seconds})


def steps(samplings: int, looks: dict[int, float] | None = None) -> list[dict[str, float]]:
    """PPO's, of two minibatches a sampling: 100 tokens in 3 s, and in 1 s."""
    sampling = {"generate_tokens": 80.0, "score_tokens": 100.0, "reference_tokens": 200.0, "value_tokens": 100.0}
    lines = []
    for number in range(1, 2 * samplings + 1):
        first = number % 2 == 1
        step = {"tokens": 50.0, "tokens_per_second": 50 / 3 if first else 50.0, **(sampling if first else {})}
        step |= {"score_seconds": 0.4, "kl": number / 10} if first else {}
        if looks and number in looks:
            step |= {"eval_reward_model_2": looks[number], "eval_reward_model": 0.0}
        lines.append(step)
    return lines


def test_arithmetic_is_8_and_a_third_of_g_for_dt_and_20_and_g_for_ppo(claim):
    """Models have one size and train for one epoch; a third of DT's samples are generated, and sampling costs 2."""
    behind = [
        ledger(1, generate=(1, TOKENS // 3)),
        ledger(1, score=(1, TOKENS)),
        ledger(1, update=(1, TOKENS), evaluate=(0, 999)),
    ]
    dt = claim.costs.cost_of(behind)
    ppo = claim.costs.cost_of(
        [
            ledger(
                1,
                generate=(1, TOKENS),
                score=(0, TOKENS),
                reference=(0, 2 * TOKENS),  # of the policy before its updates, and of the reference
                value=(0, TOKENS),
                update=(0, TOKENS),
            )
        ],
        learners=2,
    )
    assert dt.arithmetic == pytest.approx((8 + 2 / 3) * TOKENS)
    assert ppo.arithmetic == pytest.approx((20 + 2) * TOKENS)
    ratios = claim.costs.ratios(dt, ppo, None)
    assert ratios.arithmetic == pytest.approx(0.3939, abs=1e-4)
    assert ratios.to_equal_score is None


def test_epochs_multiply_what_is_learned_and_nothing_else(claim):
    behind = [ledger(1, score=(1, TOKENS)), ledger(1, update=(1, 3 * TOKENS))]
    assert claim.costs.cost_of(behind).arithmetic == (2 + 18) * TOKENS
    assert claim.costs.at_one_epoch(behind, 3.0) == pytest.approx(8 * TOKENS)


def test_looks_at_held_out_prompts_are_no_cost_and_failed_attempts_neither(claim):
    run = ledger(10, load=(1, 0), update=(5, 100), evaluate=(4, 1000))
    run.failed_device_seconds = 100.0
    assert claim.costs.cost_of([run]) == claim.costs.Cost(6.0, 600.0)


def test_a_curve_is_what_the_steps_took_without_the_judge_and_with_the_start_of_the_run(claim):
    run = ledger(17.0, load=(2, 0), evaluate=(5, 0), update=(10, 0))  # 2 samplings of 3 + 1 s, 4 s in no step
    points = claim.costs.curve(run, steps(2), answers=64, learners=2)
    assert [point.samples for point in points] == [64, 64, 128, 128]
    # Half of the scoring was the judge's.
    assert [point.cost.seconds for point in points] == pytest.approx([6.8, 7.8, 10.6, 11.6])
    # The cost of a sampling: 2 x 480 read or sampled; 6 x 2 models x 50 a step.
    assert [point.cost.arithmetic for point in points] == pytest.approx([1560, 2160, 3720, 4320])
    assert [point.kl for point in points] == [0.1, 0.1, 0.3, 0.3]


def test_equal_samples_are_at_the_last_step_that_learns_from_them(claim):
    points = claim.costs.curve(ledger(12.0), steps(3), answers=64)
    assert claim.costs.at_samples(points, 128) == points[3].cost
    assert claim.costs.at_samples(points, 192) == points[5].cost
    assert claim.costs.at_samples(points, 256) is None


def test_the_cost_of_a_score_is_that_of_the_first_look_that_has_it(claim):
    points = claim.costs.curve(ledger(16.0), steps(4, {2: 0.5, 4: 1.5, 6: 1.2, 8: 2.0}), answers=64)
    assert claim.costs.until(points, 1.2) == points[3].cost
    assert claim.costs.until(points, 1.6) == points[7].cost
    assert claim.costs.until(points, 2.1) is None


def test_best_of_n_pays_for_each_answer_and_once_for_its_start(claim):
    run = ledger(10.0, load=(1, 0), generate=(6, 800), score=(2, 1000), idle=(1, 0))
    assert claim.costs.best_of_n(run, answers=80, samples=160) == claim.costs.Cost(18.0, 7200.0)


def test_a_median_counts_only_the_seeds_that_have_a_figure(claim):
    assert claim.costs.spread([None, None]) is None
    spread = claim.costs.spread([0.4, None, 0.2])
    assert (spread.median, spread.low, spread.high, spread.seeds, spread.of) == (pytest.approx(0.3), 0.2, 0.4, 2, 3)


def test_the_ratios_of_a_recorded_seed(claim, recorded):
    """The figures are the record's own, added up by hand."""
    document = claim.document.of_seed(recorded, sizes(claim))
    expected = {
        "dpo": (2.5854, 0.8804, 2.5854),
        "best_of_n": (1.9684, 0.7306, None),
        "ppo": (0.8042, 0.1394, 1.2392),
        "rloo": (0.9958, 0.2195, 1.5116),
    }
    for method, figures in expected.items():
        ratios = document["methods"][method]["ratios"]
        got = tuple(ratios[name] for name in ("occupied", "arithmetic", "to_equal_score"))
        assert got == pytest.approx(figures, abs=1e-4), method
    assert document["target"] == recorded.scores["dt"]["judge"]
    assert [point["samples"] for point in document["methods"]["ppo"]["curve"]] == [64, 128, 192, 256]


def test_a_score_that_no_method_reaches_has_no_ratio_and_the_words_for_it(claim, recorded):
    recorded.scores["dt"]["judge"] = 5.0
    document = claim.document.document(ABOUT, sizes(claim, quick=False), {1: recorded})
    assert all(of["to_equal_score"] is None for of in document["ratios"].values())
    assert any(
        "PPO did not reach DT's held-out score in 2 times as many samples" in sentence for sentence in document["may"]
    )
    assert "By the judge, the highest score was of DT at 1 of 1 seeds." in document["may"]


def test_a_score_that_is_reached_at_some_seeds_only_flatters_the_method(claim, recorded):
    missed = replace(recorded, scores={**recorded.scores, "dt": {"judge": 5.0, "reward": 5.0, "quality": 0.0}})
    document = claim.document.document(ABOUT, sizes(claim, quick=False), {1: recorded, 2: missed})
    assert (
        document["ratios"]["ppo"]["to_equal_score"]["seeds"],
        document["ratios"]["ppo"]["to_equal_score"]["of"],
    ) == (1, 2)
    (words,) = [sentence for sentence in document["may"] if sentence.startswith("PPO reached")]
    assert "at 1 of 2 seeds" in words
    assert "flatters PPO" in words
    assert any(
        sentence.startswith("DPO reached") and "with as many samples" in sentence for sentence in document["may"]
    )


def test_quick_sizes_conclude_nothing(claim, recorded):
    document = claim.document.document(ABOUT, sizes(claim), {1: recorded})
    assert len(document["may"]) == 1
    assert "too small" in document["may"][0]
    assert json.loads(json.dumps(document)) == {**document, "by_seed": {"1": document["by_seed"][1]}}
    lines = claim.words.words_of(document)
    assert any("183,616 parameters" in line for line in lines)
    assert [line.split() for line in lines if line.startswith("256 ")] == [
        ["256", "5.29", "0.88", "0.33"],
        ["256", "4.16", "-0.57", "0.74"],
    ]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_quick_sizes_run_on_a_platform_of_their_own(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "claim.py"), "--quick", "--sweep", "1e-4", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    document = json.loads(done.stdout)
    for method, of in document["ratios"].items():
        assert of["occupied"]["median"] > 0, method
        assert of["arithmetic"]["median"] > 0, method
    (seed,) = document["by_seed"].values()
    assert [point["samples"] for point in seed["methods"]["ppo"]["curve"]] == [64, 128, 192, 256]
    assert "What may not" in done.stderr


def test_every_seed_and_number_of_samples_is_in_the_recipe(claim):
    recipe = claim.platform.recipe_of(sizes(claim, quick=False), 7, 2e-4)
    stages = recipe["stages"]
    assert {stage["seed"] for name, stage in stages.items() if name != "labelled"} == {7}
    # 128 answers are 2 samplings of 4 steps; both online methods continue to twice as many.
    assert [stages[name]["max_steps"] for name in ("ppo", "rloo")] == [16, 16]
    assert (stages["mixture"]["size"], stages["ppo"]["lr"]) == (128, 2e-4)
    assert stages["dt"]["epochs"] == claim.document.DT_EPOCHS
    short = claim.platform.swept(recipe, sizes(claim, quick=False))
    assert short["stages"]["ppo"]["max_steps"] == 8
    assert stages["ppo"]["max_steps"] == 16


@pytest.mark.parametrize("name", ["FULL", "QUICK"])
def test_looks_and_equal_samples_are_after_whole_samplings(claim, name):
    chosen = getattr(claim.script, name)
    assert chosen.samples % claim.platform.BATCH == 0
    for method in ("ppo", "rloo"):
        stage = claim.platform.recipe_of(chosen, 1, 1e-4)["stages"][method]
        assert stage["evaluate_every"] % stage["minibatches"] == 0
        assert (chosen.samples // claim.platform.BATCH * stage["minibatches"]) % stage["evaluate_every"] == 0
        assert stage["minibatches"] == claim.platform.MINIBATCHES
        assert stage["batch"] * stage.get("answers", 1) == claim.platform.BATCH
