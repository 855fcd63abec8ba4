"""Academic runs whose model is an endpoint: the harness asks as it always does, and a server elsewhere answers."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import EvaluationWorld
from test_evaluation_processes import (
    KEY,
    LOCAL,
    add_endpoint,
    change_endpoint,
    completion,
    kill_when,
    processes_of,
)

from steerboard.runs.tables import Run
from support.models.lm_eval_environment import CODE, FLEXIBLE, ITEMS, PYTHON, STRICT, needs_lm_eval, table, write_tasks
from support.servers.other_server import Answer, OtherServer, Seen, other_server

works = [needs_lm_eval, pytest.mark.long]


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        server.answer = lambda seen: completion(table()[asked_of(seen)])
        yield server


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return write_tasks(tmp_path / "tasks")


def start(world: EvaluationWorld, own: Path | None, model: str = "remote", status: int = 201, **config: Any) -> Any:
    folder = {} if own is None else {"folder": str(own)}
    body = {"config": {"run": "academic", "tasks": ["sums"], **folder, **config}, "inputs": {"model": model}}
    return world.post("runs", body, status=status)


def worked(world: EvaluationWorld, tasks: Path) -> Run:
    return world.supervise(**LOCAL, benchmarks_python=PYTHON, task_roots=str(tasks))


def asked_of(seen: Seen) -> str:
    return str(seen.json["messages"][-1]["content"])


class TestWork:
    pytestmark = works

    def test_it_answers_as_a_chat_and_its_figures_are_the_harnesss(
        self, world: EvaluationWorld, other: OtherServer, tasks: Path
    ) -> None:
        add_endpoint(world, other)
        lock, failed = threading.Lock(), set[str]()

        def answer(seen: Seen) -> Answer:
            with lock:
                if asked_of(seen) not in failed:  # each question fails once
                    failed.add(asked_of(seen))
                    return Answer.json({"error": {"message": f"busy, {KEY}"}}, status=503)
            return completion(f"{table()[asked_of(seen)]}STOP and more")

        other.answer = answer
        started = start(world, tasks, tasks=["sums", "code"], shots={"sums": 2})
        assert started["config"]["endpoint"] == "remote"
        run = worked(world, tasks)
        assert run.state == "succeeded", (run.reason, run.error)
        assert run.summary is not None
        figures = {name: run.summary[name] for name in ("sums.strict", "sums.flexible", "code.passes")}
        assert figures == {"sums.strict": STRICT, "sums.flexible": FLEXIBLE, "code.passes": pytest.approx(CODE)}
        assert run.device_seconds == 0
        (output,) = world.get(f"runs/{run.id}")["outputs"]
        assert [(task["template"], task["shots"]) for task in output["document"]["tasks"]] == [(True, 2), (True, 0)]
        shown = next(seen.json for seen in other.seen if len(seen.json["messages"]) > 1)
        # The examples are earlier turns.
        assert [turn["role"] for turn in shown["messages"]] == ["user", "assistant"] * 2 + ["user"]
        assert (shown["model"], shown["temperature"], shown["max_tokens"], shown["stop"]) == (
            ("gpt-test", 0.0, 4, ["STOP"])
        )
        assert {seen.headers["authorization"] for seen in other.seen} == {f"Bearer {KEY}"}
        logs = json.dumps(world.get(f"runs/{run.id}/logs", limit=500)["items"])
        assert "busy, ***" in logs
        assert KEY not in logs
        again = start(world, tasks, tasks=["sums", "code"], shots={"sums": 2})
        assert again["state"] == "queued", "what a server answers tomorrow is not known today, so nothing is taken over"

    def test_a_killed_run_goes_on_and_asks_nothing_twice(
        self, world: EvaluationWorld, other: OtherServer, tasks: Path
    ) -> None:
        add_endpoint(world, other)
        released, answered, environments = threading.Event(), list[str](), list[bytes]()

        def answer(seen: Seen) -> Answer:
            if asked_of(seen) == "q29":  # the kill waits for its answer
                environments.extend(Path(f"/proc/{pid}/environ").read_bytes() for pid in harnesses_of(run_id))
            if asked_of(seen) == "q30" and not released.is_set():
                released.wait(60)  # the kill comes now
                return Answer.json({}, status=503)
            answered.append(asked_of(seen))
            return completion(table()[asked_of(seen)])

        other.answer = answer
        run_id = start(world, tasks, batch_size=1)["id"]
        killer = kill_when(world, run_id, f'"answer": "{table()["q29"]}"'.encode())
        run = worked(world, tasks)
        killer.join()
        released.set()
        assert (run.state, run.reason_code) == ("queued", "stage_killed")
        # It runs code of tasks, and knows nothing that opens the key.
        (environment,) = environments
        names = {pair.partition(b"=")[0] for pair in environment.split(b"\0")}
        assert {name for name in names if name.startswith(b"STEERBOARD_")} == {b"STEERBOARD_STAGE"}
        run = worked(world, tasks)
        assert run.state == "succeeded", (run.reason, run.error)
        assert Counter(answered) == Counter({f"q{n}": 1 for n in range(ITEMS)})
        assert run.summary is not None
        assert (run.summary["sums.strict"], run.summary["resumed_rows"]) == (STRICT, 30)

    def test_a_run_goes_on_with_the_model_that_it_was_made_for(
        self, world: EvaluationWorld, other: OtherServer, tasks: Path
    ) -> None:
        add_endpoint(world, other)
        broken = threading.Event()
        broken.set()

        def answer(seen: Seen) -> Answer:
            if asked_of(seen) == "q20" and broken.is_set():
                return Answer.json({"error": {"message": "no"}}, status=401)
            return completion(table()[asked_of(seen)])

        other.answer = answer
        run_id = start(world, tasks, batch_size=4)["id"]
        assert worked(world, tasks).reason_code == "endpoint_gave_up"
        broken.clear()
        change_endpoint(world, "remote", model="another", name="renamed")
        world.post(f"runs/{run_id}/resume", {}, status=200)
        run = worked(world, tasks)
        assert run.state == "succeeded", (run.reason, run.error)
        assert {seen.json["model"] for seen in other.seen} == {"gpt-test"}
        # To another server its key would go, too.
        other.answer = lambda seen: Answer.json({"error": {"message": "no"}}, status=401)
        moved = start(world, tasks, model="renamed")["id"]
        assert worked(world, tasks).reason_code == "endpoint_gave_up"
        asked = len(other.seen)
        change_endpoint(world, "renamed", base_url=f"{other.url}/v2")
        world.post(f"runs/{moved}/resume", {}, status=200)
        run = worked(world, tasks)
        assert (run.state, run.reason_code, len(other.seen)) == ("failed", "endpoint_changed", asked)
        # One of the same name is another one.
        world.client.delete(world.url("endpoints/renamed")).raise_for_status()
        add_endpoint(world, other, name="renamed")
        world.post(f"runs/{moved}/resume", {}, status=200)
        run = worked(world, tasks)
        assert (run.state, run.reason_code, len(other.seen)) == ("failed", "unknown_endpoint", asked)

    def test_a_task_that_compares_log_probs_is_refused_and_nothing_is_asked(
        self, world: EvaluationWorld, other: OtherServer, tasks: Path
    ) -> None:
        add_endpoint(world, other)
        start(world, tasks, tasks=["sums", "choices"])
        run = worked(world, tasks)
        assert (run.state, run.reason_code, run.attempt) == ("failed", "no_log_probs", 1)
        assert run.error is not None
        assert "task choices (multiple_choice)" in run.error["detail"]
        assert "engine transformers or vllm" in run.error["hint"]
        assert other.seen == []

    def test_an_endpoint_that_refuses_ends_the_run_and_what_it_answered_is_kept(
        self, world: EvaluationWorld, other: OtherServer, tasks: Path
    ) -> None:
        add_endpoint(world, other)
        wrong = Answer.json({"error": {"message": f"no {KEY} here"}}, status=401)
        other.answer = lambda seen: wrong if asked_of(seen) == "q20" else completion(table()[asked_of(seen)])
        run_id = start(world, tasks, batch_size=4)["id"]
        run = worked(world, tasks)
        assert (run.state, run.reason_code) == ("failed", "endpoint_gave_up")
        assert run.error is not None
        assert "the endpoint answered 401: no *** here" in run.error["detail"]
        kept = (world.settings.home / "work" / run_id / "checkpoints" / "a1-rows.jsonl").read_text().split()
        assert len(kept) >= 20


def test_without_the_harness_a_run_fails_at_once_and_names_the_way_out(
    world: EvaluationWorld, other: OtherServer, tmp_path: Path
) -> None:
    add_endpoint(world, other)
    start(world, tmp_path)
    run = world.supervise(**LOCAL, benchmarks_python=Path("/no/python"))
    assert (run.state, run.reason_code, run.attempt) == ("failed", "engine_missing", 1)
    assert other.seen == []


def test_what_does_not_fit_an_endpoint_is_refused_before_anything_starts(
    world: EvaluationWorld, other: OtherServer
) -> None:
    add_endpoint(world, other)

    def faults(problem: Any) -> dict[str, str]:
        assert problem["code"] == "invalid_run"
        return {place["location"]: place["message"] for place in problem["errors"]}

    assert "inputs.model" in faults(start(world, None, model="nobody", status=422))
    assert faults(start(world, None, model="sft", endpoint="remote", tasks=["gsm8k"], status=422)) == {
        "config.endpoint": "an endpoint takes the place of `model`"
    }
    assert "config.endpoint" in faults(start(world, None, model="sft", endpoint="nobody", status=422))
    # The suite has tasks that are known to need log-probs.
    (message,) = faults(start(world, None, tasks=["gsm8k", "mmlu", "arc_challenge"], status=422)).values()
    assert "mmlu, arc_challenge compare log-probs" in message
    assert start(world, None, tasks=["gsm8k", "humaneval", "mbpp"])["state"] == "queued"


def test_a_recipe_asks_an_endpoint(world: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(world, other)
    recipe = """
name: academic
inputs:
  ours: {type: model}
stages:
  check: {run: academic, endpoint: remote, tasks: [gsm8k]}
  ours: {run: academic, model: $ours, tasks: [gsm8k]}
"""
    made = world.post("pipelines", {"text": recipe, "set": ["ours=sft"]})
    assert world.get(f"runs/{made['name']}.check")["config"]["endpoint"] == "remote"
    both = recipe.replace("endpoint: remote", "endpoint: remote, model: $ours")
    problem = world.post("pipelines", {"text": both, "set": ["ours=sft"]}, status=422)
    assert "an endpoint takes the place of `model`" in problem["errors"][0]["message"]


def harnesses_of(run_id: str) -> list[int]:
    stages = b"steerboard_workers.stages"
    return [pid for pid in processes_of(run_id) if stages in Path(f"/proc/{pid}/cmdline").read_bytes()]
