"""The stage process: one JSON line an event on standard output, nothing half-written, every failure with a code."""

from __future__ import annotations

import errno
import os
import resource
import sys

import psutil
import pytest
import torch
from running import in_fork, run_forked, run_process

from steerboard_contracts.errors import BadInput, OutOfMemory
from steerboard_contracts.stage.events import Log
from steerboard_workers.stages.__main__ import failure_of
from steerboard_workers.stages.runtime import EventWriter


def test_an_output_that_fails_leaves_nothing_behind(make_stage):
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)

    def half_a_file():
        with stage.output_file("data.jsonl") as path:
            path.write_text("half a li")
            raise RuntimeError

    def half_a_folder():
        with stage.output_folder("model") as folder:
            (folder / "weights").write_text("half")
            raise RuntimeError

    for half in (half_a_file, half_a_folder):
        with pytest.raises(RuntimeError):
            half()
    assert list((stage.directory / "outputs").iterdir()) == []


def test_an_output_appears_complete_and_replaces_an_older_attempts(make_stage):
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    for text in ("first", "second"):
        with stage.output_folder("model") as folder:
            (folder / text).write_text(text)
        with stage.output_file("data.jsonl") as path:
            path.write_text(text)
    outputs = stage.directory / "outputs"
    assert sorted(p.name for p in outputs.rglob("*")) == ["data.jsonl", "model", "second"]
    assert (outputs / "data.jsonl").read_text() == "second"


def test_rows_name_the_line_that_is_broken(make_stage, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"row": 0}\n{"row": 1\n')
    stage = make_stage({"run": "mix", "parts": [{}]}, data=str(path))
    with pytest.raises(BadInput, match="line 2 is not JSON"):
        list(stage.rows("data"))


def test_a_missing_or_wrong_input_is_named(make_stage):
    stage = make_stage({"run": "mix", "parts": [{}]})
    with pytest.raises(BadInput, match="needs an input named model"):
        stage.model("model")
    with pytest.raises(BadInput, match="must be a model"):
        stage.model("data")


def test_progress_is_thinned_but_never_loses_the_end(make_stage):
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    for done in range(1001):
        stage.progress(done, 1000, "rows", "mixing")
    events = stage._events.events
    assert events[0].done == 0
    assert events[-1].done == 1000
    assert len(events) < 50


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (BadInput("x", code="empty_file"), "empty_file", False),
        (OutOfMemory("x"), "out_of_memory", True),
        (MemoryError(), "out_of_memory", True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "out_of_memory", True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
            "out_of_memory",
            True,
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "no_space_left", True),
        (OSError(errno.EFBIG, "File too large"), "no_space_left", True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out_of_memory", True),
        (ZeroDivisionError("division by zero"), "stage_crashed", True),
    ],
)
def test_every_failure_has_its_code(error, code, retryable):
    failed = failure_of(error)
    assert (failed.code, failed.retryable) == (code, retryable)
    assert "Traceback" not in failed.detail


def test_a_crash_is_one_event_with_the_traceback_on_standard_error(make_stage, tmp_path):
    stage = make_stage({"run": "train", "method": "sft"}, model=tmp_path / "absent")
    code, events, stderr = run_forked(stage)
    assert code == 1
    assert events[-1].type == "failed"
    assert events[-1].code == "unknown_model"
    assert "Traceback" in stderr


@pytest.mark.parametrize(
    "config", ['{"run": "nothing"}', '{"run": "train", "method": "nobodys"}', '{"run": "mix"}', "1"]
)
def test_a_broken_stage_file_is_a_failure_not_a_traceback(make_stage, config):
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    (stage.directory / "stage.json").write_text(f'{{"run_id": "1", "name": "n", "config": {config}}}')
    code, events, _ = run_forked(stage)
    assert (code, events[-1].code) == (1, "bad_stage_file")


def test_prints_of_libraries_do_not_reach_the_event_stream():
    def act() -> int:
        events = EventWriter.take_stdout()
        print("noise", flush=True)
        os.system("echo more noise")
        events.write(Log(message="hello"))
        return 0

    _, out, errors = in_fork(act)
    assert out == '{"type":"log","level":"info","message":"hello"}\n'
    assert "more noise" in errors


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE as a full disk")
def test_a_full_disk_fails_with_its_code_and_leaves_no_half_model(make_stage, base_model):
    stage = make_stage({"run": "train", "method": "sft", "max_steps": 1, "batch": 4}, model=base_model)
    code, events, _ = run_forked(stage, {resource.RLIMIT_FSIZE: 64 << 10})
    assert (code, events[-1].code, events[-1].retryable) == (1, "no_space_left", True)
    assert not list((stage.directory / "outputs").iterdir())


@pytest.mark.parametrize(
    ("error", "left", "code"),
    [
        (SystemError("error return without exception set"), 32 << 20, "out_of_memory"),
        (SystemError("error return without exception set"), 1 << 30, "stage_crashed"),
        (RuntimeError("could not create a primitive"), 512 << 20, "out_of_memory"),
        (RuntimeError("could not create a primitive"), 2 << 30, "stage_crashed"),
        (RuntimeError("something else"), 512 << 20, "stage_crashed"),
    ],
)
def test_an_error_without_a_cause_is_one_of_memory_only_near_the_limit(error, left, code):
    """Native code that was refused memory may raise only this."""

    def act() -> int:
        used = psutil.Process().memory_info().data
        resource.setrlimit(resource.RLIMIT_DATA, (used + left, used + left))
        print(failure_of(error).code)
        return 0

    _, out, errors = in_fork(act)
    assert out == f"{code}\n", errors


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS as exhausted memory")
def test_exhausted_memory_fails_with_its_code(make_stage, base_model):
    big = {"run": "base", "source": "random:tiny-llama", "hidden": 4096, "layers": 32, "heads": 32, "vocabulary": 300}
    stage = make_stage(big)
    limit = ["bash", "-c", f'ulimit -v 6000000; exec {sys.executable} "$@"', "_"]
    code, events, _ = run_process(stage, limit)
    assert (code, events[-1].code, events[-1].retryable) == (1, "out_of_memory", True)
