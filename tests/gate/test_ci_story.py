"""The story of docs/ci.md with curl alone, against `steerboard up` with a worker: token, recipe, evaluation, gate.
Other pages are in tests/docs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
import yaml
from pydantic import ValidationError

from steerboard.evaluation.gate.rules import METRICS, GateRules, parse_rules
from steerboard.evaluation.schemas import EvaluationCreate
from support.patience import PATIENCE, wait_until
from support.servers.running_up import client_token, running_up

DOCS = (Path(__file__).parents[2] / "docs" / "ci.md").read_text()

RECIPE = """
name: ci
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 4}
  reward: {run: train, method: reward_model, model: sft, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 4}
"""
EVALUATION = {
    "name": "PIPELINE",
    "prompts": {"dataset": "things", "split": "all", "limit": 12},
    "entrants": [
        {"name": "sft", "model": "PIPELINE.sft", "decoding": {"temperature": 0.0, "max_new_tokens": 8}},
        {"name": "base", "model": "PIPELINE.base", "decoding": {"temperature": 0.0, "max_new_tokens": 8}},
    ],
    "rewards": ["PIPELINE.reward"],
}
HOLDS = {"metric": "responses_missing", "op": "==", "value": 0}
BREAKS = {"metric": "n", "op": "<", "value": 1}
UNDECIDED = {"metric": "win_rate", "entrant": "base", "vs": "sft", "by": "judge", "op": ">", "value": 0.5}
BY_REWARD = {"metric": "win_rate", "entrant": "base", "vs": "sft", "by": "reward", "op": ">=", "value": 0}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """`steerboard up` with a worker and data, and the environment of its command line."""
    if not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("needs curl and bash")
    texts = [
        (f"Name a thing that is {color} {n}.", f"A {color} thing.") for n in range(10) for color in ("red", "blue")
    ]
    with running_up(tmp_path_factory.mktemp("home")) as environment:
        for name, kind, rows in (
            ("things", "instructions", [{"prompt": prompt, "response": answer} for prompt, answer in texts]),
            ("pairs", "preferences", [{"prompt": one, "chosen": other, "rejected": "No."} for one, other in texts]),
        ):
            httpx.post(
                f"{environment['STEERBOARD_URL']}/api/v1/projects/default/datasets/import",
                headers={"Authorization": f"Bearer {client_token(environment)}"},
                data={"name": name, "kind": kind},
                files={"file": (f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())},
                timeout=PATIENCE,
            ).raise_for_status()
        yield environment


@pytest.mark.long
def test_the_job_of_the_page_runs_from_the_token_to_the_verdict(up: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "evaluation.json").write_text(json.dumps(EVALUATION))
    rules = [HOLDS, BY_REWARD, BREAKS, UNDECIDED]
    (tmp_path / "gate.json").write_text(json.dumps({"rules": rules}))
    token = "TOKEN=$(steerboard tokens create ci --scope read --scope write --scope run)\nexport TOKEN\n"
    more = """
for rules in 1 2 3; do
  python3 -c 'import json, sys; n = int(sys.argv[1]); print(json.dumps(json.load(open("gate.json"))["rules"][:n]))' \\
    $((rules + 1)) > some.json
  STEERBOARD_TOKEN=$TOKEN steerboard gate "$EVALUATION" --rules some.json > /dev/null && CODE=0 || CODE=$?
  echo "the command says $CODE"
done
"""
    environment = {**up, "SET": "instructions=things preferences=pairs", "WAIT_SECONDS": "240", "POLL_SECONDS": "0.3"}
    environment.pop("CI_JOB_ID", None)
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -euo pipefail", token, *blocks("sh"), more])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout.splitlines()
    assert "pipelines/ci-1 is succeeded" in printed
    assert "evaluations/ci-1 is answered" in printed
    assert printed[-4:] == [
        "gate exit code: 2",
        "the command says 0",
        "the command says 1",
        "the command says 2",
    ], done.stdout
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert [rule["outcome"] for rule in verdict["rules"]] == ["pass", "pass", "fail", "invalid"]
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "1")


@pytest.mark.long
def test_one_command_ends_with_the_verdict_though_its_worker_is_killed_in_the_middle(
    up: dict[str, str], tmp_path: Path
) -> None:
    """A recipe without any method that learns from rewards, from random weights to the verdict."""
    api = httpx.Client(headers={"Authorization": f"Bearer {client_token(up)}"}, timeout=PATIENCE)
    mine = f"{up['STEERBOARD_URL']}/api/v1/projects/default"
    rows = "".join(json.dumps({"prompt": f"Name thing number {n}."}) + "\n" for n in range(200)).encode()
    api.post(
        f"{mine}/datasets/import", data={"name": "asked", "kind": "prompts"}, files={"file": ("asked.jsonl", rows)}
    ).raise_for_status()
    stage = "  report: {run: evaluate, entrants: [base, sft], rewards: [reward], data: $prompts, decoding: DECODING}\n"
    decoding = "{temperature: 0.0, max_new_tokens: 40}"
    recipe = RECIPE.replace("name: ci", "name: whole") + stage.replace("DECODING", decoding)
    recipe = recipe.replace("\nstages:", "\n  prompts: {type: dataset, kind: prompts}\nstages:")
    (tmp_path / "recipe.yaml").write_text(recipe)
    rules = [HOLDS, {"metric": "length_mean", "entrant": "sft", "op": ">=", "value": 0}]
    (tmp_path / "gate.yaml").write_text(yaml.safe_dump({"rules": rules}))
    given = [
        part for setting in ("instructions=things", "preferences=pairs", "prompts=asked") for part in ("--set", setting)
    ]
    command = ["steerboard", "run", "recipe.yaml", *given, "--gate", "gate.yaml", "--json", "--report", "report.json"]
    with (tmp_path / "said").open("w") as said:
        running = subprocess.Popen(command, cwd=tmp_path, env=up, stdout=subprocess.PIPE, stderr=said, text=True)

    def running_shard() -> str | None:
        stage = api.get(f"{mine}/runs/whole-1.report")
        shards = stage.json()["shards"] if stage.status_code == 200 else []
        return next((shard["id"] for shard in shards if shard["state"] == "running"), None)

    killed = wait_until(running_shard, (tmp_path / "said").read_text, seconds=900, pause=0.05, process=running)
    workers = api.get(f"{up['STEERBOARD_URL']}/api/v1/system/workers").json()
    pid = next(worker["pid"] for worker in workers if worker["alive"] and worker["pool"] == "default")
    os.kill(pid, signal.SIGKILL)
    printed, _ = running.communicate()
    assert running.returncode == 0, (tmp_path / "said").read_text()
    assert api.get(f"{mine}/runs/{killed}").json()["attempt"] == 2
    verdict = json.loads(printed)
    assert (verdict["evaluation"], verdict["verdict"]) == ("whole-1.report", "pass")
    report = json.loads((tmp_path / "report.json").read_text())
    assert [row["method"] for row in report["methods"]] == ["base", "sft"]


def test_the_documents_of_the_page_are_such_that_the_api_takes_them() -> None:
    gate, evaluation = (json.loads(block) for block in blocks("json"))
    assert len(parse_rules(GateRules.model_validate(gate), ["sft", "dt"])) == 5
    try:
        EvaluationCreate.model_validate(evaluation)
    except ValidationError as error:
        pytest.fail(str(error))
    workflow: dict[Any, Any] = yaml.safe_load(blocks("yaml")[0])
    assert "ci/align.sh" in workflow["jobs"]["align"]["steps"][1]["run"]


def test_the_page_lists_every_metric() -> None:
    table = DOCS[DOCS.index("| Metric |") : DOCS.index("The stats of an estimate")]
    listed = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    assert {name for cell in listed for name in re.findall(r"`(\w+)`", cell)} == set(METRICS)
