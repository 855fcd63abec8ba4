"""A recipe's evaluate stage: an evaluation whose answers and rewards are runs of the pipeline."""

from __future__ import annotations

import html
import io
import json
import math
import shutil
from typing import Any

import numpy as np
import pytest
from evaluation_world import WORDS, EvaluationWorld
from rich.console import Console
from sqlalchemy import select

from steerboard.cli.output.pipeline_result import print_report
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.state.sweeper import settle_all
from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts.prompt_split import is_held_out, prompt_hash
from steerboard_contracts.report.pipeline import PipelineReport
from steerboard_contracts.turns import Message
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.rows.known_quality import Sentiment
from steerboard_workers.synthetic import quality
from steerboard_workers.synthetic.topics import SITUATIONS, TOPICS

RECIPE = """
name: compare
inputs:
  sft: {type: model}
  dt: {type: model}
  reward: {type: model}
  prompts: {type: dataset, kind: prompts}
stages:
  report:
    run: evaluate
    entrants: [$sft, {model: $dt, scores: [-5.0, 5.0]}]
    rewards: [$reward]
    data: $prompts
    decoding: {temperature: 0.0, max_new_tokens: 6}
"""
GIVEN = ["sft=sft", "dt=dt", "reward=reward", "prompts=asked"]
MODELS = ("reward", "second", "third")
N = {"metric": "n", "op": ">", "value": 1, "min_n": 1}


@pytest.fixture
def asked(world: EvaluationWorld) -> EvaluationWorld:
    """A world with a dataset of prompts, some of them held out."""
    world.dataset("asked", [{"prompt": f"say {word} {number}"} for word in WORDS for number in range(20)])
    return world


def start(world: EvaluationWorld, *more: str, text: str = RECIPE) -> Any:
    return world.post("pipelines", {"text": text, "set": [*GIVEN, *more]})


def finished(world: EvaluationWorld, *more: str, text: str = RECIPE) -> Any:
    """The report of a pipeline that was worked off."""
    name = start(world, *more, text=text)["name"]
    world.work_off()
    settle_all(world.sessions)  # what was taken over from an equal run
    world.work_off()
    assert world.get(f"pipelines/{name}")["state"] == "succeeded", world.get(f"runs/{name}.report")["reason"]
    return world.get(f"pipelines/{name}/report")


def answers(world: EvaluationWorld, evaluation: str = "compare-1.report") -> dict[str, list[dict[str, Any]]]:
    """The {prompt, text, rewards} of each entrant in the order of the prompts."""
    by_entrant: dict[str, list[dict[str, Any]]] = {}
    for prompt in world.get(f"evaluations/{evaluation}/prompts", limit=100)["items"]:
        for response in prompt["responses"]:
            said = {
                "prompt": prompt["messages"][-1]["content"],
                "text": response["turns"][-1],
                "rewards": response["rewards"],
            }
            by_entrant.setdefault(response["entrant"], []).append(said)
    return by_entrant


def test_the_stage_is_an_evaluation_whose_runs_are_the_stages_own(asked: EvaluationWorld) -> None:
    start(asked)
    stage = asked.get("runs/compare-1.report")
    assert (stage["state"], stage["progress"]["done"], stage["progress"]["total"]) == ("pending", 0, 4)
    parts = ["report.sft", "report.dt_-5", "report.dt_5", "report.reward"]
    assert [run["name"] for run in stage["shards"]] == parts
    part = asked.get(f"runs/{stage['shards'][0]['id']}")
    assert stage["evaluation"] == part["evaluation"] == "compare-1.report"
    assert [run["name"] for run in asked.get("pipelines/compare-1")["runs"]] == ["report"]
    made = asked.detail("compare-1.report")
    assert [(entrant["name"], entrant["score"]) for entrant in made["entrants"]] == [
        ("sft", None),
        ("dt_-5", -5),
        ("dt_5", 5),
    ]
    assert made["prompts_from"]["split"] == "held_out"
    assert asked.work_off() == ["answer", "answer", "answer", "reward"]
    assert asked.get("pipelines/compare-1")["state"] == "succeeded"
    ended = asked.get("runs/compare-1.report")
    assert ended["device_seconds"] == 4.0
    assert ended["summary"]["evaluation"] == "compare-1.report"
    assert ended["summary"]["winner"] == "none"
    assert [run["state"] for run in ended["shards"]] == ["succeeded"] * 4


def test_every_figure_of_the_report_is_that_of_the_answers(asked: EvaluationWorld) -> None:
    report = finished(asked)
    said = answers(asked)
    assert [(row["method"], row["name"], row["entrant"], row["score"]) for row in report["methods"]] == [
        ("sft", "sft", "sft", None),
        ("decision_transformer", "dt_-5", "dt", -5.0),
        ("decision_transformer", "dt_5", "dt", 5.0),
    ]
    assert report["prompts"] == len(said["sft"]) > 5
    by_name = {name: [row["rewards"]["reward"] for row in rows] for name, rows in said.items()}
    for row in report["methods"]:
        assert row["reward_mean"] == pytest.approx(np.mean(by_name[row["name"]]))
        assert row["reward_low"] < row["reward_mean"] < row["reward_high"]
        if row["name"] != "sft":
            wins = [(a > b) + 0.5 * (a == b) for a, b in zip(by_name[row["name"]], by_name["sft"], strict=True)]
            assert row["win_rate_vs_baseline"] == pytest.approx(np.mean(wins))
    assert report["methods"][0]["win_rate_vs_baseline"] is None
    assert report["control"]["requested"] == [-5.0, 5.0]
    assert report["control"]["achieved"] == [row["reward_mean"] for row in report["methods"][1:]]
    example = report["examples"][0]
    first = [rows[0]["text"] for rows in said.values()]
    assert [(answer["name"], answer["text"]) for answer in example["answers"]] == list(zip(said, first, strict=True))
    assert [stage["name"] for stage in report["stages"]] == ["report"]


def test_without_labelled_data_and_pairs_rewards_are_raw_and_the_report_says_so(asked: EvaluationWorld) -> None:
    asked.register("base", "base")
    report = finished(asked, "dt=base", text=RECIPE.replace("{model: $dt, scores: [-5.0, 5.0]}", "$dt"))
    assert [row["method"] for row in report["methods"]] == ["sft", "base"]
    assert (report["units"], report["units_of"], report["control"]) == ("raw", None, None)
    assert any("Rewards are raw" in warning for warning in report["warnings"])
    logged = [line["message"] for line in asked.get("runs/compare-1.report/logs")["items"]]
    assert set(report["warnings"]) <= set(logged)


def test_the_stage_keeps_the_evaluations_report_as_it_is_then(asked: EvaluationWorld) -> None:
    report = finished(asked)
    whole = asked.get("evaluations/compare-1.report/report")
    kept = report["report"]
    assert whole["baseline"] == kept["baseline"] == "sft"
    assert report["evaluation"] == {"id": whole["evaluation_id"], "name": "compare-1.report"}
    later = ("version", "computed_at", "seconds", "recipe")
    assert {name: value for name, value in kept.items() if name not in later} == {
        name: value for name, value in whole.items() if name not in later
    }
    assert kept["recipe"] == whole["recipe"]
    assert kept["recipe"]["entrants"] == ["sft", "dt_-5", "dt_5"]
    (output,) = asked.get("runs/compare-1.report")["outputs"]
    assert output["document"] == kept
    means = {row["entrant"]: row["reward"]["reward"]["value"] for row in whole["methods"]}
    assert means == {row["name"]: row["reward_mean"] for row in report["methods"]}
    # Who is entered later is in the evaluation and not in what the stage kept.
    asked.post("evaluations/compare-1.report/entrants", {"model": "sft", "name": "again"})
    asked.work_off()
    later = asked.get("evaluations/compare-1.report/report")
    assert [row["entrant"] for row in later["methods"]] == ["sft", "dt_-5", "dt_5", "again"]
    assert asked.get("pipelines/compare-1/report")["report"] == kept


def test_the_verdict_of_a_pipeline_is_its_evaluations_word_for_word_wherever_it_is_read(asked: EvaluationWorld) -> None:
    """Few prompts, and the best of four is judged by the model that chose it: means alone would make it the winner."""
    salt, fraction = asked.project.split_salt, asked.project.held_out_fraction
    prompts = (f"ask {number}" for number in range(1000))
    unseen = (p for p in prompts if is_held_out(prompt_hash([Message(role="user", content=p)], salt), fraction))
    asked.dataset("few", [{"prompt": next(unseen)} for _ in range(5)])
    report = finished(asked, "prompts=few", text=BEST)
    means = {row["name"]: row["reward_mean"] for row in report["methods"]}
    assert max(means, key=lambda name: means[name]) == "sft_best_of_4"
    headline = asked.get("evaluations/compare-1.report/report")["headline"]
    assert headline["text"].startswith("No winner: ")
    assert report["headline"] == headline
    assert report["summary"]["verdict"] == headline["text"]
    assert {reservation["code"] for reservation in headline["reservations"]} >= {
        "not_significant",
        "few_items",
        "circular",
    }
    (output,) = asked.get("runs/compare-1.report")["outputs"]
    assert output["document"]["headline"]["text"] == headline["text"]
    assert asked.get("runs/compare-1.report")["summary"]["winner"] == "none"
    page = asked.client.get(asked.url("evaluations/compare-1.report/report.html")).text
    assert html.escape(headline["text"]) in page
    claims = [check["text"] for check in report["summary"]["checks"]]
    assert claims
    assert all(html.escape(claim) in page for claim in claims)
    printed = io.StringIO()
    print_report(Console(file=printed, soft_wrap=True), PipelineReport.model_validate(report), None)
    assert f"{headline['text']} (by reward model reward)" in printed.getvalue()
    assert "won" not in printed.getvalue()


def test_the_costs_of_a_method_are_those_of_the_evaluation(asked: EvaluationWorld) -> None:
    asked.dataset("learned", [{"prompt": "say red", "response": "red"}], kind="instructions")
    asked.trained_on("sft", "learned")
    with transaction(asked.sessions) as session:
        run = session.scalars(select(Run).where(Run.name == "train-sft")).one()
        session.add(
            RunAttempt(run_id=run.id, attempt=1, worker="w", devices=1, device_seconds=9.0, outcome="succeeded")
        )
        session.scalars(select(Model).where(Model.name == "dt")).one().parent_id = session.scalars(
            select(Model.id).where(Model.name == "sft")
        ).one()
    rows = {row["name"]: row for row in finished(asked, text=BEST)["methods"]}
    costs = {cost["entrant"]: cost for cost in asked.get("evaluations/compare-1.report/report")["costs"]}
    assert {name: (row["own_device_seconds"], row["total_device_seconds"]) for name, row in rows.items()} == {
        "sft_best_of_4": (1.0, 10.0),
        "sft": (9.0, 9.0),
        "dt_-5": (None, 9.0),
        "dt_5": (None, 9.0),
    }
    for name, row in rows.items():
        assert row["own_device_seconds"] == costs[name]["own_device_seconds"]
        assert row["total_device_seconds"] == costs[name]["ledger"]["device_seconds"]
        assert [run["name"] for run in row["shared_runs"]] == ["train-sft"]


def test_a_reward_model_that_chose_answers_of_an_entrant_is_not_the_independent_one(asked: EvaluationWorld) -> None:
    reward = asked.folders / "reward"
    asked.folders = asked.settings.home
    for name in ("second", "third"):
        folder = asked.folders / name
        shutil.copytree(reward, folder)
        info = json.loads((folder / "steerboard.json").read_text())
        (folder / "steerboard.json").write_text(json.dumps({**info, "parameters": info["parameters"] + len(name)}))
        asked.register(name, name)
    text = BEST.replace("  reward: {type: model}", "".join(f"  {name}: {{type: model}}\n" for name in MODELS).rstrip())
    text = text.replace("best_of: 4, reward: $reward", "best_of: 4, reward: $second")
    for rewards, independent in (("$reward, $second", None), ("$reward, $second, $third", "third")):
        report = finished(
            asked, "second=second", "third=third", text=text.replace("rewards: [$reward]", f"rewards: [{rewards}]")
        )
        assert report["reward_model"]["independent_name"] == independent
        rates = [row["independent_win_rate_vs_baseline"] for row in report["methods"] if row["name"] != "sft"]
        assert [rate is not None for rate in rates] == [independent is not None] * 3


def test_an_evaluation_that_somebody_made_has_no_such_table(asked: EvaluationWorld) -> None:
    asked.evaluate()
    asked.work_off()
    assert asked.get("evaluations/eval/report")["recipe"] is None


def test_known_quality_is_a_source_beside_the_reward_models(asked: EvaluationWorld) -> None:
    questions = [f"How can I {topic.verb}{situation.phrase}?" for topic in TOPICS for situation in SITUATIONS]
    asked.dataset("known", [{"prompt": question} for question in questions])
    text = RECIPE.replace("data: $prompts", "data: $prompts\n    quality: synthetic")
    report = finished(asked, "prompts=known", text=text)
    assert report["synthetic"]
    sources = asked.get("evaluations/compare-1.report/report")["rewards"]
    assert [source["reward_model"] for source in sources] == ["reward", "known quality"]
    assert sources[1]["units"] == "raw"
    means = {score["entrant"]: score["mean"] for score in sources[1]["comparison"]["scores"]}
    for row in report["methods"]:
        known = [quality(answer["prompt"], answer["text"]) for answer in answers(asked)[row["name"]]]
        assert row["quality_mean"] == pytest.approx(np.mean(known))
        assert [row[f"quality_{end}"] for end in ("low", "high")] == [
            means[row["name"]][end] for end in ("low", "high")
        ]


def test_how_positive_the_answers_are_is_a_source_of_real_text(asked: EvaluationWorld) -> None:
    report = finished(asked, text=RECIPE.replace("data: $prompts", "data: $prompts\n    quality: sentiment"))
    assert (report["synthetic"], report["quality"]) == (False, "sentiment")
    program = Sentiment()
    for row in report["methods"]:
        known = [program.value(Scorable([], answer["text"])) for answer in answers(asked)[row["name"]]]
        assert row["quality_mean"] == pytest.approx(np.mean(known))


def test_known_quality_of_other_prompts_is_refused(asked: EvaluationWorld) -> None:
    start(asked, text=RECIPE.replace("data: $prompts", "data: $prompts\n    quality: synthetic"))
    for _ in range(5):
        asked.work_or_fail()
    stage = asked.get("runs/compare-1.report")
    assert (stage["state"], stage["reason_code"]) == ("failed", "not_synthetic")


def test_what_cannot_be_evaluated_fails_before_any_work_and_leaves_nothing(asked: EvaluationWorld) -> None:
    salt, fraction = asked.project.split_salt, asked.project.held_out_fraction
    prompts = (f"learn {number}" for number in range(100))
    learned = (p for p in prompts if not is_held_out(prompt_hash([Message(role="user", content=p)], salt), fraction))
    asked.dataset("seen", [{"prompt": next(learned)}])
    refused = asked.post("pipelines", {"text": RECIPE, "set": [*GIVEN, "prompts=seen"]}, status=422)
    assert "`seen` has no held-out rows among its 1 row" in refused["errors"][0]["message"]
    stage = asked.get(f"runs/{start(asked, 'dt=sft')['name']}.report")
    assert (stage["state"], stage["reason_code"], stage["shards"]) == ("failed", "no_score_format", [])
    assert stage["error"]["hint"]
    with transaction(asked.sessions) as session:
        assert session.scalars(select(Evaluation)).all() == []
    assert asked.work() is None


def test_a_cancelled_pipeline_is_resumed_with_the_answers_that_it_has(asked: EvaluationWorld) -> None:
    start(asked)
    asked.work()
    before = asked.responses("compare-1.report")
    cancelled = asked.post("pipelines/compare-1/cancel", None, status=200)
    assert cancelled["state"] == "cancelled"
    assert asked.claim() is None
    assert [run["state"] for run in asked.get("runs/compare-1.report")["shards"]] == ["succeeded"] + ["cancelled"] * 3
    resumed = asked.post("pipelines/compare-1/resume", None, status=200)
    assert resumed["state"] == "running"
    assert asked.work_off() == ["answer", "answer", "reward"]
    assert asked.get("pipelines/compare-1")["state"] == "succeeded"
    after = asked.responses("compare-1.report")
    assert before.items() <= after.items()
    assert len(asked.get("evaluations")["items"]) == 1


def test_an_answer_that_fails_fails_the_stage_and_the_rest_waits_for_a_resumption(asked: EvaluationWorld) -> None:
    start(asked)
    asked.work()
    asked.fail_next("bad_row")
    stage = asked.get("runs/compare-1.report")
    assert (stage["state"], stage["reason_code"]) == ("failed", "bad_row")
    assert "run report.dt_-5 failed" in stage["reason"]
    assert asked.claim() is None
    assert stage["resumable"]
    assert [run["state"] for run in stage["shards"]] == ["succeeded", "failed", "cancelled", "failed"]
    asked.post("runs/compare-1.report/resume", None, status=200)
    assert asked.work_off() == ["answer", "answer", "reward"]
    assert asked.get("pipelines/compare-1")["state"] == "succeeded"


def test_an_equal_stage_takes_the_evaluation_over_while_it_is_there(asked: EvaluationWorld) -> None:
    first = finished(asked)
    start(asked)
    assert asked.claim() is None
    second = asked.get("pipelines/compare-2/report")
    assert second["evaluation"] == first["evaluation"]
    assert asked.get("runs/compare-2.report")["evaluation"] == "compare-1.report"
    assert second["methods"] == first["methods"]
    assert asked.post("pipelines/compare-2/gate", {"rules": [N]}, status=200)["evaluation"] == "compare-1.report"
    asked.client.delete(asked.url("evaluations/compare-1.report")).raise_for_status()
    # What its stage had kept is still shown; a gate needs the evaluation itself.
    assert asked.get("pipelines/compare-1/report")["methods"] == first["methods"]
    assert asked.post("pipelines/compare-1/gate", {"rules": [N]}, status=404)["code"] == "no_evaluation"
    again = finished(asked)
    assert again["evaluation"]["name"] == "compare-3.report"
    assert again["methods"] == first["methods"]


def test_the_gate_of_a_pipeline_is_that_of_its_evaluation(asked: EvaluationWorld) -> None:
    rules = {"rules": [{"metric": "reward_mean", "entrant": "dt_5", "vs": "sft", "source": "reward", **N}]}
    rules["rules"][0] |= {"metric": "reward_mean", "op": ">", "value": -100}
    assert start(asked)["name"] == "compare-1"
    waiting = asked.post("pipelines/compare-1/gate", rules, status=200)
    assert waiting["verdict"] == "invalid"
    asked.work_off()
    of_pipeline = asked.post("pipelines/compare-1/gate", rules, status=200)
    assert of_pipeline == asked.post("evaluations/compare-1.report/gate", rules, status=200)
    assert of_pipeline["verdict"] == "pass"
    assert asked.post("pipelines/compare-1/gate?stage=report", rules, status=200) == of_pipeline
    assert asked.post("pipelines/compare-1/gate?stage=sft", rules, status=404)["code"] == "no_evaluation"
    assert asked.post("pipelines/nobody/gate", rules, status=404)["code"] == "not_found"
    xml = asked.client.post(asked.url("pipelines/compare-1/gate?format=junit"), json=rules)
    assert xml.headers["content-type"].startswith("application/xml")


def test_a_models_page_has_its_rows_of_the_recipes_report(asked: EvaluationWorld) -> None:
    report = finished(asked)
    (evaluation,) = asked.get("models/dt/evaluations")
    assert evaluation["pipeline"]["name"] == "compare-1"
    assert [(row["score"], row["reward"]) for row in evaluation["rows"]] == [
        (row["score"], row["reward_mean"]) for row in report["methods"][1:]
    ]


def test_a_single_evaluate_run_is_an_evaluation_of_its_own(asked: EvaluationWorld) -> None:
    config = {"run": "evaluate", "entrants": [{}], "decoding": {"temperature": 0.0, "max_new_tokens": 6}}
    inputs = {"entrants.0": "sft", "rewards.0": "reward", "data": "asked"}
    assert asked.post("runs", {"config": config, "inputs": inputs})["name"] == "evaluate-1"
    assert asked.work_off() == ["answer", "reward"]
    (output,) = asked.get("runs/evaluate-1")["outputs"]
    assert output["document"]["evaluation"] == "evaluate-1"
    assert [row["entrant"] for row in output["document"]["methods"]] == ["sft"]


def test_several_samples_of_the_model_compared_with_give_the_curve_of_its_best_of_n(asked: EvaluationWorld) -> None:
    text = RECIPE.replace("entrants: [$sft,", "entrants: [$sft, {model: $sft, samples: 4},")
    text = text.replace("    rewards:", "    kl_to: $sft\n    rewards:").replace("temperature: 0.0", "temperature: 1.0")
    rows = {row["name"]: row["variant"] for row in finished(asked, text=text)["methods"]}
    assert (rows["sft"], rows["sft_4_samples"]) == (None, "4 samples")
    (curve,) = asked.get("evaluations/compare-1.report/report")["frontier"]["best_of_n"]
    assert (curve["entrant"], curve["n"], curve["alike"]) == ("sft_4_samples", [1, 2, 4], ["sft"])
    rewards = [point["value"] for point in curve["reward"]]
    assert rewards == sorted(rewards)


BEST = RECIPE.replace("entrants: [$sft,", "entrants: [{model: $sft, best_of: 4, reward: $reward}, $sft,")


def test_the_best_of_several_answers_is_an_entrant_whose_reward_model_is_circular_for_it(
    asked: EvaluationWorld,
) -> None:
    report = finished(asked, text=BEST.replace("    rewards:", "    kl_to: $sft\n    rewards:"))
    evaluation = asked.get("evaluations/compare-1.report")
    best = next(entrant for entrant in evaluation["entrants"] if entrant["name"] == "sft_best_of_4")
    rows = {row["name"]: row for row in report["methods"]}
    assert rows["sft_best_of_4"]["reward_mean"] > rows["sft"]["reward_mean"]
    assert rows["sft_best_of_4"]["win_rate_vs_baseline"] > 0.5
    described = {name: (row["best_of"], row["chosen_by"]) for name, row in rows.items() if name.startswith("sft")}
    assert described == {"sft_best_of_4": (4, "reward"), "sft": (None, None)}
    assert rows["sft"]["win_rate_vs_baseline"] is None
    spent = asked.get(f"runs/{best['run']['id']}")["device_seconds"]
    assert rows["sft_best_of_4"]["own_device_seconds"] == pytest.approx(spent)
    assert spent > 0
    assert (best["samples"], best["decoding"]["temperature"]) == (1, 1.0)
    assert best["decoding"]["best_of"] == {
        "n": 4,
        "reward": "reward",
        "content_hash": asked.get("models/reward")["content_hash"],
    }
    reported = asked.get("evaluations/compare-1.report/report")
    (reward,) = reported["rewards"]
    assert reward["trained"] == ["sft_best_of_4"]
    entrants = {entrant["name"]: (entrant["best_of"], entrant["chosen_by"]) for entrant in reported["entrants"]}
    assert (entrants["sft_best_of_4"], entrants["sft"]) == ((4, "reward"), (None, None))
    # The recipe names the model to compare with; its best of four answers can only be so far away.
    assert reported["frontier"]["kl_to"] == "sft"
    fluency = {entrant["entrant"]: entrant for entrant in reported["fluency"]["entrants"]}
    for name, row in rows.items():
        own = fluency[name]
        assert row["perplexity"] == own["perplexity"]["value"] > 1
        assert (row["empty"], row["repeated"]) == (own["empty"], own["repeated"])
        assert (row["distinct_1"], row["distinct_2"]) == (own["distinct_1"], own["distinct_2"])
    kinds = {
        entrant["entrant"]: (entrant["kind"], entrant["kl"]["value"]) for entrant in reported["frontier"]["entrants"]
    }
    assert kinds["sft"] == ("same", 0.0)
    assert kinds["sft_best_of_4"] == ("bound", pytest.approx(math.log(4) - 3 / 4))
    assert kinds["dt_5"] == ("estimate", None), "its answers are greedy"
