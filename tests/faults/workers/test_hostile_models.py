"""A model that was made to do harm ends its own run, soon and with a reason, and nothing else."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_stack import SFT, Stack

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from support.models.hostile_models import SLOW_TEXT, endless_template, panicking_tokenizer, slow_tokenizer

QUICK = {**SFT, "max_steps": 2, "checkpoint_every": 0}


def take_hostile(stack: Stack, make: Callable[[Path, Path], Path]) -> None:
    """Let the next runs begin with such a model."""
    folder = make(stack.shared.base, stack.home / "hostile")
    with transaction(stack.sessions) as session:
        stack.base_id = register_model(
            session,
            ArtifactStore(stack.environment["STEERBOARD_ARTIFACT_URL"]),
            session.get_one(Project, stack.project_id),
            name="hostile",
            folder=folder,
            role="base",
            method=None,
            parent_id=None,
            run_id=None,
        ).id


def slow_data(stack: Stack) -> uuid.UUID:
    path = stack.home / "slow.jsonl"
    path.write_text("".join(json.dumps({"prompt": SLOW_TEXT, "response": str(n)}) + "\n" for n in range(20)))
    with transaction(stack.sessions) as session:
        project = session.get_one(Project, stack.project_id)
        return import_file(session, project, path=path, name="slow", kind="instructions").dataset.id


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (endless_template, "template_timed_out"),
        (panicking_tokenizer, "broken_tokenizer"),
    ],
)
def test_a_hostile_model_fails_its_run_once_and_by_name_and_the_queue_goes_on(
    stack: Stack, make: Callable[[Path, Path], Path], code: str
) -> None:
    good = stack.base_id
    take_hostile(stack, make)
    hostile = stack.create("hostile", QUICK)
    stack.base_id = good
    after = stack.create("after", QUICK)
    stack.start_worker("only")
    failed, succeeded = stack.finish(hostile, after)
    assert (failed.state, failed.reason_code, failed.attempt) == ("failed", code, 1), failed.reason
    assert failed.error is not None
    assert failed.error["hint"]
    assert "Traceback" not in failed.reason
    assert succeeded.state == "succeeded", succeeded.reason


@pytest.mark.long
def test_a_stage_that_hangs_in_a_library_is_ended_for_its_silence(stack: Stack) -> None:
    take_hostile(stack, slow_tokenizer)
    stack.data_id = slow_data(stack)
    run_id = stack.create("slow", QUICK, max_attempts=1)
    # Longer than a stage needs to import torch on a crowded machine.
    stack.start_worker("only", STEERBOARD_STAGE_STALL_SECONDS="25")
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code) == ("failed", "stage_stalled"), run.reason
    assert not stack.stage_pids(run_id)


# Real native code that loses its way, in the process that reads a model's config for a stage.
CRASH = """
import ctypes, sys

def crash(event, arguments):
    reads_config = event == "open" and str(arguments[0]).endswith("config.json")
    if reads_config and "steerboard_workers/stages" in sys.argv[0]:
        ctypes.string_at(0)

sys.addaudithook(crash)
"""


@pytest.mark.long
def test_a_model_at_which_a_library_crashes_fails_its_run_once_as_what_it_is(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    crashes, after = stack.create("crashes", QUICK), stack.create_mix("after")
    stack.start_worker("only", PYTHONPATH=paths)
    failed, succeeded = stack.finish(crashes, after)
    assert (failed.state, failed.reason_code, failed.attempt) == ("failed", "bad_model", 1), failed.reason
    assert "SIGSEGV" in failed.reason
    assert "opening the model base" in failed.reason
    assert succeeded.state == "succeeded", succeeded.reason


@pytest.mark.long
def test_a_stage_that_is_killed_while_it_opens_a_model_is_tried_again(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        CRASH.replace("ctypes.string_at(0)", "import os; os.kill(os.getpid(), 9)")
    )
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    run_id = stack.create("killed", QUICK, max_attempts=2)
    stack.start_worker("only", PYTHONPATH=paths)
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code, run.attempt) == ("failed", "stage_killed", 2), run.reason


@pytest.mark.long
def test_a_tokenizer_that_hangs_has_less_time_than_a_stage_that_computes(stack: Stack) -> None:
    take_hostile(stack, slow_tokenizer)
    stack.data_id = slow_data(stack)
    run_id = stack.create("slow", QUICK, max_attempts=1)
    stack.start_worker("only", STEERBOARD_MODEL_STALL_SECONDS="8")
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code) == ("failed", "stage_stalled"), run.reason
    assert "tokenising with the model hostile" in run.reason
    assert run.error is not None
    assert "STEERBOARD_MODEL_STALL_SECONDS" in run.error["hint"]
    assert not stack.stage_pids(run_id)


@pytest.mark.long
def test_a_tokenizer_that_hangs_has_less_time_where_it_generates(stack: Stack) -> None:
    take_hostile(stack, slow_tokenizer)
    config = {"run": "generate", "prompts": [SLOW_TEXT], "precision": "fp32", "decoding": {"max_new_tokens": 4}}
    run_id = stack.create_generate("slow", config, max_attempts=1)
    stack.start_worker("only", STEERBOARD_MODEL_STALL_SECONDS="8")
    (run,) = stack.finish(run_id)
    assert (run.state, run.reason_code) == ("failed", "stage_stalled"), run.reason
    assert "tokenising with the model hostile" in run.reason
    assert not stack.stage_pids(run_id)


@pytest.mark.long
def test_a_cancel_ends_a_hanging_stage_within_two_seconds_however_rare_the_heartbeats_are(stack: Stack) -> None:
    take_hostile(stack, slow_tokenizer)
    stack.data_id = slow_data(stack)
    run_id = stack.create("slow", QUICK)
    stack.start_worker("only", STEERBOARD_HEARTBEAT_SECONDS="20", STEERBOARD_LEASE_SECONDS="80")
    # What tokenises has a core to itself; importing takes less.
    stack.wait(lambda: max(map(processor_seconds, stack.stage_pids(run_id)), default=0) > 9, 120, "it never hung")
    pids = stack.stage_pids(run_id)
    stack.cancel(run_id, "ann")
    asked = time.monotonic()
    (run,) = stack.finish(run_id)
    assert time.monotonic() - asked < 2.5
    assert (run.state, run.reason) == ("cancelled", "cancelled by ann")
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
