"""Whole recipes by a platform with a worker, on a tiny model and few rows: raft, iterative-dpo and preferences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dashboard_world import World, instructions, preferences

COMMON = (
    *("base=random:tiny-llama", "base.vocabulary=400", "base.hidden=32", "base.layers=1", "base.heads=2"),
    *("base.max_length=96", "instructions=sentences", "preferences=choices"),
    *("sft.lr=1.0e-3", "sft.batch=8", "sft.max_steps=20", "reward.lr=1.0e-3", "reward.batch=8", "reward.max_steps=8"),
    *("report.prompts=12", "report.decoding.max_new_tokens=12"),
)
SEVERAL = ("answers.decoding.n=3", "answers.decoding.max_new_tokens=12")
RAFT = (*SEVERAL, "raft.lr=1.0e-4", "raft.batch=8", "raft.max_steps=4")
ROUNDS = (
    *SEVERAL,
    *("dpo.lr=1.0e-5", "dpo.batch=8", "dpo.max_steps=4"),
    "rounds={count: 2, stop: {judge: independent, prompts: 12, decoding: {max_new_tokens: 12}}}",
)


PAIR_METHODS = ("dpo", "dpo_norm", "rpo", "ipo", "cdpo", "robust_dpo", "hinge", "mpo", "kto", "simpo", "orpo")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    running = World(tmp_path_factory.mktemp("platform"))
    running.start()
    running.import_rows("sentences", "instructions", instructions())
    running.import_rows("choices", "preferences", preferences())
    yield running
    running.stop()


def ran(platform: World, recipe: str, *settings: str) -> Any:
    """The pipeline when it has succeeded; a stage that did not has its reason in the message."""
    started = platform.client.post("pipelines", json={"recipe": recipe, "set": [*COMMON, *settings]})
    assert started.status_code == 201, started.text
    path = f"pipelines/{started.json()['name']}"
    platform.wait(lambda: platform.get(path)["state"] in ("succeeded", "failed", "cancelled"), recipe, 1200)
    finished = platform.get(path)
    assert finished["state"] == "succeeded", [(run["name"], run["state"], run["reason"]) for run in finished["runs"]]
    return finished


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_raft_runs_to_its_report(platform: World) -> None:
    pipeline = ran(platform, "raft", *RAFT)
    rows = {row["name"]: row for row in platform.get(f"pipelines/{pipeline['name']}/report")["methods"]}
    assert set(rows) == {"sft", "raft"}
    selection = platform.get(f"runs/{pipeline['name']}.best/selection")
    assert selection["kept_groups"] == selection["groups"] - sum(selection["dropped"].values())
    assert selection["rewards"][0]["best"]["value"] > selection["rewards"][0]["mean"]["value"]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_iterative_dpo_runs_its_rounds_and_its_timeline_has_every_figure(platform: World) -> None:
    pipeline = ran(platform, "iterative-dpo", *ROUNDS)
    states = {run["name"]: run["state"] for run in pipeline["runs"]}
    timeline = platform.get(f"pipelines/{pipeline['name']}/rounds")
    assert [row["number"] for row in timeline["rounds"]] == [1, 2]
    assert (timeline["start"], timeline["judge"]) == ("sft", "independent")
    for row in timeline["rounds"]:
        skipped = timeline["stopped_after"] is not None and row["number"] > timeline["stopped_after"]
        assert {states[name] for name in row["stages"]} == {"skipped" if skipped else "succeeded"}
        if skipped:
            assert row["reason"].startswith("not run: after round 1, independent fell from ")
            continue
        pairs = row["selection"]
        assert pairs["kept_groups"] + sum(pairs["dropped"].values()) == pairs["groups"]
        assert pairs["best"]["value"] > pairs["mean"]["value"]
        answers = row["answers"]
        assert (answers["stage"], answers["judge"], answers["independent"]) == ("report", "independent", True)
        assert 0 <= answers["against_start"]["low"] <= answers["against_start"]["value"]
        assert answers["against_previous"]["n"] == answers["reward"]["n"] > 5
        assert row["policy"]["name"] == f"{pipeline['name']}.dpo-{row['number']}"
        assert row["cost"]["device_seconds"] > 0
        assert row["cost"]["sampled_tokens"] > pairs["groups"]
        assert row["decision"]["prompts"] == answers["reward"]["n"]
    first = timeline["rounds"][0]["answers"]
    assert first["against_previous"] == first["against_start"]


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_every_pair_method_is_compared_with_sft_and_its_best_of_eight_on_the_same_prompts(platform: World) -> None:
    settings = [f"{name}.{field}" for name in PAIR_METHODS for field in ("max_steps=3", "batch=8")]
    name = ran(platform, "preferences", *settings)["name"]
    rows = {row["name"]: row for row in platform.get(f"pipelines/{name}/report")["methods"]}
    assert set(rows) == {"sft", *PAIR_METHODS, "sft_best_of_8", "sft_8_samples"}
    assert len({row["n"] for row in rows.values()}) == 1
    report = platform.get(f"evaluations/{name}.report/report")
    kinds = {entrant["entrant"]: entrant["kind"] for entrant in report["frontier"]["entrants"]}
    assert kinds == dict.fromkeys(PAIR_METHODS, "estimate") | {
        "sft": "same",
        "sft_8_samples": "same",
        "sft_best_of_8": "bound",
    }
    assert [entrant["kl"]["n"] for entrant in report["frontier"]["entrants"] if entrant["kind"] == "estimate"] == [
        rows["sft"]["n"]
    ] * 11
    curves = {curve["reward_model"]: curve for curve in report["frontier"]["best_of_n"]}
    assert len(curves) == 2
    for curve in curves.values():
        assert (curve["n"], curve["alike"]) == ([1, 2, 4, 8], ["sft"])
    steps = [step["step"] for step in platform.get(f"runs/{name}.dpo/probes")["steps"]]
    assert (steps[0], steps[-1]) == (0, 3)
