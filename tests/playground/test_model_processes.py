"""Whatever a model does, it does in a process of its own: its columns say what happened, and no one else notices."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playground_world import PlaygroundWorld, model_processes, worker_process, working

from steerboard.platform.settings import Settings
from steerboard_workers.interactive.worker import InteractiveWorker
from support.models.hostile_models import SLOW_TEXT, endless_template, panicking_tokenizer, slow_tokenizer
from support.patience import wait_until

LONG = {"max_new_tokens": 1900}


def column(model: str = "sft", **decoding: Any) -> dict[str, Any]:
    return {"model": model, "decoding": {"max_new_tokens": 20} | decoding}


def answer(world: PlaygroundWorld, model: str, **fields: Any) -> dict[str, Any]:
    """How a comparison of one column ends."""
    ended: dict[str, Any] = world.finish(world.compare(column(model), **fields))["columns"][0]
    return ended


def hang(world: PlaygroundWorld, folder: Path) -> dict[str, Any]:
    """A comparison whose model computes inside of a library, and will for minutes."""
    world.register("slow", slow_tokenizer(world.folders / "sft", folder))
    made: dict[str, Any] = world.compare(column("slow"), prompt=SLOW_TEXT)
    wait_until(lambda: world.comparison(made)["columns"][0]["state"] == "running")
    return made


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(endless_template, "template_timed_out", marks=pytest.mark.long),
        (panicking_tokenizer, "broken_tokenizer"),
    ],
)
def test_a_hostile_model_fails_its_column_by_name_and_no_other(
    world: PlaygroundWorld,
    worker: InteractiveWorker,
    tmp_path: Path,
    make: Callable[[Path, Path], Path],
    code: str,
) -> None:
    world.register("hostile", make(world.folders / "sft", tmp_path / "hostile"))
    bad, good = world.finish(world.compare(column("hostile"), column("sft")))["columns"]
    assert (bad["state"], bad["error"]["code"]) == ("failed", code)
    assert bad["error"]["hint"]
    assert "Traceback" not in bad["error"]["detail"]
    assert good["state"] == "succeeded"


def test_a_model_that_hangs_is_ended_after_its_limit_and_started_anew_when_it_is_asked_again(
    world: PlaygroundWorld, settings: Settings, tmp_path: Path
) -> None:
    with working(settings.model_copy(update={"interactive_stall_seconds": 4.0})):
        made = hang(world, tmp_path / "slow")
        failed = world.finish(made)["columns"][0]
        assert (failed["state"], failed["error"]["code"]) == ("failed", "model_timed_out")
        assert "slow" in failed["error"]["detail"]
        assert answer(world, "slow", prompt="say red")["state"] == "succeeded"


def test_while_a_model_hangs_another_project_is_answered(
    world: PlaygroundWorld, worker: InteractiveWorker, tmp_path: Path
) -> None:
    made = hang(world, tmp_path / "slow")
    with world.in_project("neighbour"):
        world.register("theirs", "sft", project="neighbour")
        assert answer(world, "theirs")["state"] == "succeeded"
    assert world.comparison(made)["columns"][0]["state"] == "running"
    world.post(f"comparisons/{made['id']}/cancel", status=200)


def test_a_cancel_ends_a_hanging_model_at_once_and_its_project_goes_on(
    world: PlaygroundWorld, worker: InteractiveWorker, tmp_path: Path
) -> None:
    made = hang(world, tmp_path / "slow")
    busiest = max(model_processes().values(), key=lambda process: process.cpu_times().user)
    world.post(f"comparisons/{made['id']}/cancel", status=200)
    began = time.monotonic()
    wait_until(lambda: not busiest.is_running())
    assert time.monotonic() - began < 30
    assert answer(world, "sft")["state"] == "succeeded"


def test_a_killed_model_costs_its_own_answer_and_is_started_anew(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    made = world.compare(column("sft", **LONG))
    wait_until(lambda: world.comparison(made)["columns"][0]["tokens"] > 5)
    for process in model_processes().values():
        process.kill()
    failed = world.finish(made)["columns"][0]
    assert (failed["state"], failed["error"]["code"]) == ("failed", "model_crashed")
    assert "SIGKILL" in failed["error"]["detail"]
    assert failed["text"], "what was written stays"
    assert answer(world, "sft")["state"] == "succeeded"


@pytest.mark.long
def test_a_model_that_uses_more_memory_than_it_may_says_so(world: PlaygroundWorld, settings: Settings) -> None:
    # Less than to import torch takes.
    with working(settings.model_copy(update={"stage_memory_mb": 150})):
        failed = answer(world, "sft")
    assert (failed["state"], failed["error"]["code"]) == ("failed", "out_of_memory")
    assert "MB of memory" in failed["error"]["detail"]
    assert "STEERBOARD_STAGE_MEMORY_MB" in failed["error"]["hint"]


def test_a_models_process_knows_no_credentials_and_holds_no_connection(
    world: PlaygroundWorld, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STEERBOARD_DATABASE_URL", "STEERBOARD_SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "MY_THING"):
        monkeypatch.setenv(name, "sesame")
    with working(settings):
        assert answer(world, "sft")["state"] == "succeeded"
        process = max(model_processes().values(), key=lambda process: process.cpu_times().user)
        assert "sesame" not in process.environ().values()
        files = [os.readlink(f"/proc/{process.pid}/fd/{entry}") for entry in os.listdir(f"/proc/{process.pid}/fd")]
        assert [file for file in files if not file.startswith(("pipe:", "/dev/", "anon_inode:"))] == []
        assert Path(f"/proc/{process.pid}/oom_score_adj").read_text().strip() == "1000"


@pytest.mark.long
@pytest.mark.parametrize("hanging", [False, True], ids=["answering", "hanging"])
def test_a_killed_worker_takes_its_models_with_it(world: PlaygroundWorld, tmp_path: Path, hanging: bool) -> None:
    with worker_process(tmp_path / "worker.log") as worker:
        if hanging:
            hang(world, tmp_path / "slow")
        else:
            made = world.compare(column("sft", **LONG))
            wait_until(lambda: world.comparison(made)["columns"][0]["tokens"] > 5)
        processes = model_processes(worker.pid).values()
        assert processes
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        wait_until(lambda: not any(process.is_running() for process in processes))
