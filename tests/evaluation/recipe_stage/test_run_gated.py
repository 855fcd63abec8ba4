"""`steerboard run RECIPE --gate`: pipeline, evaluation and gate in one command, with the gate's exit codes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from evaluation_world import EvaluationWorld
from test_recipe_stage import GIVEN, RECIPE, asked, start

from steerboard.runs.state.sweeper import settle_all
from support.processes.command_line import Done, Steerboard, steerboard, url

__all__ = ["asked", "steerboard", "url"]

PASS = {"metric": "responses_missing", "op": "==", "value": 0}
FAIL = {"metric": "n", "op": "<", "value": 1}
INVALID = {"metric": "win_rate", "entrant": "dt_5", "vs": "sft", "by": "judge", "op": ">", "value": 0.5}


@pytest.fixture
def gated(asked: EvaluationWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path) -> Callable[..., Done]:
    def run(rules: Any, *more: str, text: str = RECIPE) -> Done:
        recipe, gate = written(tmp_path, text), tmp_path / "gate.yaml"
        gate.write_text(yaml.safe_dump({"rules": rules}))
        given = [part for setting in GIVEN for part in ("--set", setting)]
        return steerboard(url, token, "run", recipe, *given, "--gate", str(gate), *more)

    return run


@pytest.fixture
def worker(world: EvaluationWorld) -> Iterator[None]:
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.1):
            world.work_or_fail()
            settle_all(world.sessions)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.mark.usefixtures("worker")
def test_the_command_exits_as_the_gate_says(gated: Callable[..., Done], tmp_path: Path) -> None:
    junit = tmp_path / "gate.xml"
    report = tmp_path / "report.json"
    for rules, verdict, code in (([PASS], "pass", 0), ([PASS, FAIL], "fail", 1), ([PASS, INVALID], "invalid", 2)):
        done = gated(rules, "--json", "--junit", str(junit), "--report", str(report))
        assert done.returncode == code, done.stderr
        said = json.loads(done.stdout)
        assert said["verdict"] == verdict
        assert ElementTree.parse(junit).getroot().get("tests") == str(len(rules))
        document = json.loads(report.read_text())
        assert document["evaluation"]["id"] == said["evaluation_id"]
        assert [row["name"] for row in document["methods"]] == ["sft", "dt_-5", "dt_5"]
    printed = gated([PASS])
    assert printed.returncode == 0
    assert "compare-1.report: pass" in printed.stdout


def test_wrong_usage_exits_64_before_anything_is_started(
    gated: Callable[..., Done], asked: EvaluationWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    for rules, words in (
        ([{**PASS, "metric": "luck"}], "there is no metric 'luck'"),
        ([{**INVALID, "entrant": "dtt"}], "there is no entrant 'dtt'"),
        ([{**INVALID, "by": "reward", "source": "rewrad"}], "rules.0.source: there is no reward model 'rewrad'"),
        ("nothing", "no list of rules"),
    ):
        done = gated(rules)
        assert (done.returncode, words in done.stderr) == (64, True), done.stderr
    (tmp_path / "gate.yaml").write_text(yaml.safe_dump({"rules": [PASS]}))
    given = "inputs:\n  sft: {type: model, default: sft}\n  asked: {type: dataset, kind: prompts, default: asked}\n"
    no_evaluation = f"name: none\n{given}stages:\n  made: {{run: generate, model: $sft, data: $asked}}\n"
    for text, words in (
        (RECIPE.replace("run: evaluate", "run: evaluat"), "did you mean"),
        (no_evaluation, "no_evaluation"),
    ):
        done = steerboard(url, token, "run", written(tmp_path, text), "--gate", str(tmp_path / "gate.yaml"))
        assert (done.returncode, words in done.stderr) == (64, words != ""), done.stderr
    gate = ("--gate", str(tmp_path / "gate.yaml"))
    assert gated([PASS], "--loud").returncode == 64
    assert steerboard(url, token, "run", "--gate=gate.yaml").returncode == 64
    assert gated([PASS], "--junit", str(tmp_path / "no" / "out.xml")).returncode == 64
    assert steerboard(url, "nobody", "run", written(tmp_path, RECIPE), *gate).returncode == 64
    assert steerboard("http://127.0.0.1:9", token, "run", written(tmp_path, RECIPE), *gate).returncode == 69
    # Without a gate 2 is what it has always been.
    assert steerboard(url, token, "run", written(tmp_path, RECIPE), "--loud").returncode == 2
    assert asked.get("pipelines")["items"] == []


@pytest.mark.usefixtures("worker")
def test_a_pipeline_that_breaks_is_invalid_and_the_gate_is_not_asked(
    gated: Callable[..., Done],
) -> None:
    done = gated([PASS], text=RECIPE.replace("data: $prompts", "data: $prompts\n    quality: synthetic"))
    assert done.returncode == 2, done.stderr
    assert "not_synthetic" in done.stderr
    assert "the gate needs a finished pipeline" in done.stderr


def test_the_gate_takes_a_pipeline(
    asked: EvaluationWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate.yaml"
    gate.write_text(yaml.safe_dump({"rules": [PASS]}))

    def held(name: str) -> Done:
        return steerboard(url, token, "gate", name, "--rules", str(gate))

    start(asked)
    under_way = held("compare-1")
    assert (under_way.returncode, "invalid" in under_way.stdout) == (2, True), under_way.stderr
    asked.work_off()
    done = held("compare-1")
    assert (done.returncode, "compare-1.report: pass" in done.stdout) == (0, True), done.stderr
    unknown = held("compare-9")
    assert (unknown.returncode, "unknown_evaluation" in unknown.stderr) == (64, True)


def written(folder: Path, text: str) -> str:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return str(path)
