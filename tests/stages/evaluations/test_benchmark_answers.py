"""The benchmark stage on several answers per prompt, of which some are right; RewardBench 2's own domains."""

from __future__ import annotations

import json
import random
from collections import defaultdict

import pytest
from hand_pipeline import HandPipeline

from figures.figures_runner import figures, write
from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_statistics.benchmarks.rewardbench2 import DOMAINS, TIES, best_of
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts

CONFIG = {"run": "benchmark"}
INPUTS = {"reward": "reward", "pairs": "bench"}


def rows_of(prompts):
    """The rows of (source, item, right answers, wrong ones), as the import writes them."""
    rows = []
    for group, (source, item, right, wrong) in enumerate(prompts):
        asked = {"prompt": f"How do I grow {group} tomatoes?", "source": source, "group": group}
        for candidate, answer in enumerate([*right, *wrong]):
            graded = {"response": answer, "reward": float(candidate < len(right)), "candidate": candidate}
            rows.append({**asked, **graded, **({"item": item} if item else {})})
    return rows


def watered(*cups):
    return [f"Give them {number} cups of water, then {number * 3} more." for number in cups]


def prompts_of_rewardbench2():
    """Right and wrong by lot, so that whatever the model goes by wins some and loses some."""
    lot = random.Random(3)

    def answers(right, wrong):
        drawn = watered(*lot.sample(range(1, 500), right + wrong))
        return drawn[:right], drawn[right:]

    prompts = [(domain, str(number), *answers(1, 3)) for domain in DOMAINS if domain != TIES for number in range(1, 7)]
    for twins in range(4):
        prompts += [(TIES, f"ref:{twins}", *answers(1, 1)), (TIES, f"tied:{twins}", *answers(2, 1))]
    return prompts


def finished(result):
    assert isinstance(result.last, Succeeded), result.last
    (output,) = result.last.outputs
    return json.loads((result.directory / output.path).read_text())


def scores_of(pipeline, rows):
    """The scores of each group by the very model, in one go, right answers first."""
    engine = reward_engine(load_reward_model(pipeline.things["reward"].path))
    texts = [Scorable([{"role": "user", "content": row["prompt"]}], row["response"]) for row in rows]
    scores = defaultdict(list)
    for row, score in zip(rows, score_texts(engine, texts, 2048), strict=True):
        scores[row["group"]].append(float(score))
    return scores


def test_rewardbench_2_is_what_the_figures_command_finds_in_the_same_scores(pipeline: HandPipeline, tmp_path):
    prompts = prompts_of_rewardbench2()
    rows = rows_of(prompts)
    pipeline.dataset("bench", "labelled", rows)
    result = pipeline.run("benchmark", CONFIG, INPUTS)
    benchmark = finished(result)
    scores = scores_of(pipeline, rows)
    expected = figures(
        write(
            tmp_path / "scores.jsonl",
            *(
                {"subset": source, "id": item, "num_correct": len(right), "scores": scores[group]}
                for group, (source, item, right, _) in enumerate(prompts)
            ),
        )
    )
    bench = benchmark["rewardbench2"]
    assert bench["domains"] == pytest.approx(expected["domains"])
    assert len({round(share, 6) for share in bench["domains"].values()}) > 2
    assert bench["ties"] == pytest.approx(expected["ties"])
    assert bench["overall"] == pytest.approx(expected["overall"])
    assert bench["missing"] == []
    won = [best_of(scores[group], len(right)) for group, (_, _, right, _) in enumerate(prompts)]
    assert benchmark["accuracy"]["value"] == pytest.approx(sum(won) / len(won))
    assert (benchmark["pairs"], benchmark["prompts"], benchmark["left_out"]) == (0, len(prompts), 0)
    assert benchmark["chance"] == pytest.approx((30 / 4 + 4 / 2 + 4 * 2 / 3) / 38)
    assert {source["source"]: source["accuracy"]["n"] for source in benchmark["sources"]} == dict.fromkeys(
        DOMAINS, 6
    ) | {TIES: 8}
    summary = result.last.summary
    assert (summary["prompts"], summary["rewardbench2"]) == (38, bench["overall"])
    assert summary["rewardbench2_precise_if"] == bench["domains"]["Precise IF"]
    # A second attempt has nothing left to score.
    kept = pipeline.directory / "benchmark" / "checkpoints" / "a1-rows.jsonl"
    (pipeline.directory / "again" / "checkpoints").mkdir(parents=True)
    (pipeline.directory / "again" / "checkpoints" / "a1-rows.jsonl").write_bytes(kept.read_bytes())
    again = pipeline.run("again", CONFIG, INPUTS)
    assert finished(again) == benchmark
    assert again.last.summary["resumed_rows"] == len({(row["prompt"], row["response"]) for row in rows})


def test_the_right_answers_have_the_highest_grade_and_prompts_without_a_wrong_one_are_left_out(pipeline: HandPipeline):
    prompts = [("Math", None, watered(1, 2), watered(3)), ("Math", None, watered(4), watered(5, 6))]
    rows = rows_of([*prompts, ("Math", None, watered(7, 8), [])])
    for row in rows:
        row["reward"] = 4.5 if row["reward"] else 1.0 + row["candidate"]
    pipeline.dataset("bench", "labelled", rows)
    benchmark = finished(pipeline.run("benchmark", CONFIG, INPUTS))
    scores = scores_of(pipeline, rows)
    assert (benchmark["prompts"], benchmark["left_out"]) == (2, 1)
    assert benchmark["accuracy"]["value"] == (best_of(scores[0], 2) + best_of(scores[1], 1)) / 2
    assert benchmark["chance"] == (2 / 3 + 1 / 3) / 2
    # One source of that name is not yet the benchmark.
    assert benchmark["rewardbench2"] is None


def test_equal_answers_share_a_prompt(pipeline: HandPipeline):
    same = watered(3)
    pipeline.dataset("bench", "labelled", rows_of([("a", None, same, same * 3)]))
    benchmark = finished(pipeline.run("benchmark", CONFIG, INPUTS))
    assert (benchmark["accuracy"]["value"], benchmark["ties"]) == (0.25, 1)


def test_answers_that_are_in_no_group_or_all_right_are_refused(pipeline: HandPipeline):
    alone = [{"prompt": "Hi", "response": "Yes.", "reward": 1.0}]
    pipeline.dataset("alone", "labelled", alone)
    pipeline.dataset("right", "labelled", rows_of([("a", None, watered(1, 2), [])]))
    for name, code in (("alone", "no_groups"), ("right", "single_answers")):
        result = pipeline.run(name, CONFIG, {**INPUTS, "pairs": name})
        assert isinstance(result.last, Failed)
        assert (result.last.code, result.last.retryable) == (code, False)
