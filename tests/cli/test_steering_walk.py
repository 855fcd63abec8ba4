"""A graded file, from its import to a policy that is asked for two attributes, evaluated and exported: by the commands
of the recipe `graded`, with an answer's grade as its reward and its length as a second attribute."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GRADED = ROOT.parent / "shared" / "data" / "graded" / "arena_bench_graded.jsonl.gz"
SHAPE = {"vocabulary": 400, "hidden": 32, "layers": 1, "heads": 2, "max_length": 192}
BASE = {"run": "base", "source": "random:tiny-llama", **SHAPE}
STAGES = ("sft", "reward", "mle", "rwr", "dt")
QUICK = {"lr": "1e-3", "batch": "8", "max_steps": "4", "epochs": "1"}
ASKED = ["rm_score:5,verbosity:0", "rm_score:5,verbosity:4"]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """`steerboard up` with a base model and what the recipe asks for besides grades."""
    sys.path.append(str(ROOT / "tests" / "e2e"))
    from dashboard_world import World, instructions

    running = World(tmp_path_factory.mktemp("steering"))
    try:
        running.start()
        rows = instructions()
        running.import_rows("things", "instructions", rows)
        pairs = [{"prompt": row["prompt"], "chosen": row["response"], "rejected": "No."} for row in rows]
        running.import_rows("pairs", "preferences", pairs)
        config = {
            "run": "base",
            "source": "random:tiny-llama",
            "vocabulary": 400,
            "hidden": 32,
            "layers": 1,
            "heads": 2,
        }
        body = {"name": "tiny", "config": {**config, "max_length": 192}, "inputs": {"data.0": "things"}}
        run = running.client.post("runs", json=body).json()
        running.wait(lambda: running.get(f"runs/{run['id']}")["state"] == "succeeded", "the base model")
        yield running
    finally:
        running.stop()


def synthetic() -> list[dict[str, Any]]:
    things = ["bread", "rain", "a lamp", "the sea", "snow"]
    return [
        {"prompt": f"What is {thing} {n}?", "response": f"It is {thing}. " * (1 + n % 6), "gpt4_score": 1 + n % 10}
        for n in range(24)
        for thing in things
    ]


def real() -> list[dict[str, Any]]:
    if not GRADED.is_file():
        pytest.skip(f"the shared test data is not at {GRADED}")
    with gzip.open(GRADED, "rt") as file:
        rows = [json.loads(line) for line in file]
    # As they fit the window of a tiny model. Without a grade, nothing could be learned by reward.
    return [row for row in rows if len(row["prompt"]) < 150 and row["gpt4_score"] is not None][:400]


@pytest.mark.parametrize("source", [synthetic, real])
def test_a_graded_file_becomes_a_policy_of_two_attributes(world: Any, tmp_path: Path, source: Any) -> None:
    rows = source()
    longest = max(len(row["response"]) for row in rows)
    for row in rows:
        # For some rows no one judged the length.
        length = len(row["response"])
        row["words"] = None if length % 5 == 0 else min(4, 8 * length // longest)
    name = source.__name__
    file = tmp_path / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    mapping = "reward=gpt4_score,attributes.verbosity=words"
    world.steerboard(
        *("datasets", "import", str(file), "--kind", "labelled", "--map", mapping, "--bad-rows", "skip"),
    )
    judged = [row["words"] for row in rows if row["words"] is not None]
    assert 0 < len(judged) < len(rows)

    given = {"graded": name, "preferences": "pairs", "instructions": "things", "base": "tiny"}
    given |= {f"{stage}.{field}": value for stage in STAGES for field, value in QUICK.items()}
    given |= {
        "dt.attributes": "[rm_score, verbosity]",
        "report.entrants.3.scores": json.dumps(ASKED),
        "report.prompts": "4",
        "report.decoding": "{temperature: 0.0, max_new_tokens: 8}",
    }
    settings = [part for field, value in given.items() for part in ("--set", f"{field}={value}")]
    world.steerboard("run", "graded", *settings, "--wait")
    pipeline = world.get("pipelines")["items"][0]["name"]

    policy = world.get(f"models/{pipeline}.dt")
    attributes = policy["info"]["condition"]["attributes"]
    spans = [(attribute["name"], attribute["low"], attribute["high"]) for attribute in attributes]
    assert spans == [("rm_score", -5, 5), ("verbosity", min(judged), max(judged))]

    report = world.get(f"evaluations/{pipeline}.report/report")
    asked = {row["name"]: row["score"] for row in report["entrants"] if row["score"] is not None}
    assert sorted(asked.values()) == ASKED
    answers = world.client.get(f"evaluations/{pipeline}.report/answers").text.splitlines()
    conditions = {row["model_id"]: row.get("condition") for row in map(json.loads, answers)}
    assert {name: condition for name, condition in conditions.items() if condition is not None} == asked

    # Asked by name in any order, and for one of them alone.
    command = ("generate", f"{pipeline}.dt", "--prompt", "What is rain?", "--max-new-tokens", "4", "--json")
    out = world.steerboard(*command, "--score", "verbosity:2,rm_score:1", "--score", "verbosity:2")
    assert [entrant["score"] for entrant in json.loads(out)] == ["rm_score:1,verbosity:2", "verbosity:2"]
    exported = tmp_path / "exported"
    world.steerboard("models", "export", f"{pipeline}.dt", str(exported))
    kept_form = json.loads((exported / "steerboard.json").read_text())["condition"]
    assert kept_form == policy["info"]["condition"]
    world.steerboard("datasets", "export", name, str(tmp_path / "again.jsonl"))
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    attributes_of = {(row["prompt"], row["response"]): row.get("attributes") for row in again}
    for row in rows:
        expected = None if row["words"] is None else {"verbosity": row["words"]}
        assert attributes_of.get((row["prompt"], row["response"]), expected) == expected
