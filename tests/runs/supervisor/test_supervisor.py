"""What the supervisor makes of a stage process: its words, its end, and what it must never know."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest

from steerboard.runs.progress_log import Batch
from steerboard_contracts.stage.events import Failed, Log, Metrics, Progress, Succeeded
from steerboard_workers.supervisor import allocation
from steerboard_workers.supervisor.failure_diagnosis import failure_of
from steerboard_workers.supervisor.process import StageProcess, environment
from steerboard_workers.supervisor.progress_log import Journal
from steerboard_workers.worker_process import parse_devices

DONE = Succeeded(outputs=[])


@pytest.mark.parametrize(
    ("status", "tail", "killed_for_memory", "code"),
    [
        ("exit 1", ["Traceback", "ValueError: no"], False, "stage_crashed"),
        ("exit 0", [], False, "stage_crashed"),
        ("signal 11", [], False, "stage_crashed"),
        ("signal 9", [], False, "stage_killed"),
        (None, [], False, "stage_killed"),
        ("lease over", [], False, "worker_lost"),
        ("signal 9", [], True, "out_of_memory"),
        ("exit 1", ["MemoryError"], False, "out_of_memory"),
        ("memory 2147483648", [], False, "out_of_memory"),
        ("signal 6", ["terminate called after throwing an instance of 'std::bad_alloc'"], False, "out_of_memory"),
    ],
)
def test_an_end_without_a_last_word_is_judged_by_the_evidence(
    status: str | None, tail: list[str], killed_for_memory: bool, code: str
) -> None:
    failure = failure_of(None, status, tail, killed_for_memory)
    assert failure is not None
    assert (failure.code, failure.retryable) == (code, True)


OPENING = "opening the model base"


@pytest.mark.parametrize(
    ("status", "tail", "code", "retryable"),
    [
        ("signal 11", [], "bad_model", False),
        ("signal 6", ["thread has overflowed its stack"], "bad_model", False),
        ("signal 6", ["terminate called after throwing an instance of 'std::bad_alloc'"], "out_of_memory", True),
        ("signal 9", [], "stage_killed", True),
        ("exit 1", [], "stage_crashed", True),
        ("lease over", [], "worker_lost", True),
    ],
)
def test_a_crash_over_a_models_files_is_the_models(status: str, tail: list[str], code: str, retryable: bool) -> None:
    failure = failure_of(None, status, tail, False, OPENING)
    assert failure is not None
    assert (failure.code, failure.retryable) == (code, retryable)


def test_a_stages_own_word_stands() -> None:
    said = Failed(code="bad_input", detail="Row 3 is empty.", hint="Mend it.")
    failure = failure_of(said, "exit 1", ["MemoryError"], True)
    assert failure is not None
    assert (failure.code, failure.detail, failure.retryable) == ("bad_input", "Row 3 is empty.", False)


def test_success_needs_both_the_last_word_and_a_clean_exit() -> None:
    assert failure_of(DONE, "exit 0", [], False) is None
    failure = failure_of(DONE, "signal 11", [], False)
    assert failure is not None
    assert failure.code == "stage_crashed"


def test_a_stage_knows_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ["STEERBOARD_DATABASE_URL", "STEERBOARD_REDIS_URL", "STEERBOARD_TOKEN", "PGPASSWORD", "DATABASE_URL"]
    others = ["HF_TOKEN", "OPENAI_API_KEY", "WANDB_API_KEY", "REGISTRY_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS"]
    for name in [*secrets, *others, "AWS_SECRET_ACCESS_KEY", "FSSPEC_S3_SECRET", "OTEL_EXPORTER_OTLP_HEADERS"]:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    monkeypatch.setenv("HF_HOME", "/models")
    seen = environment("run:1", 2, ["0", "3"])
    assert "secret" not in seen.values()
    assert seen["TOKENIZERS_PARALLELISM"] == "true"
    assert (seen["HF_HOME"], seen["OMP_NUM_THREADS"]) == ("/models", "2")
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"]) == ("0,3", "PCI_BUS_ID")


FAULTS = """
import resource, torch
torch.zeros(64 << 20, dtype=torch.uint8).fill_(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    torch.zeros(64 << 20, dtype=torch.uint8).fill_(1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture(params=["", "jemalloc"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """The name of jemalloc's library, or None where it is hidden."""
    library = find_library(request.param) if request.param else None
    if request.param and library is None:
        pytest.skip("jemalloc is not installed (apt-get install libjemalloc2)")
    for name in ("LD_PRELOAD", "MALLOC_CONF", "THP_MEM_ALLOC_ENABLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(allocation, "find_library", lambda name: library)
    allocation.allocation.cache_clear()
    yield library
    allocation.allocation.cache_clear()


def test_large_tensors_of_a_stage_on_a_cpu_are_not_made_of_small_fresh_pages(installed: str | None) -> None:
    if "[madvise]" not in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("this kernel gives huge pages always or never, not where they are asked for")

    def faults(devices: list[str]) -> int:
        given = environment("run:1", 1, devices)
        return int(subprocess.run([sys.executable, "-c", FAULTS], env=given, capture_output=True, check=True).stdout)

    pages = 4 * (64 << 20) // os.sysconf("SC_PAGESIZE")
    assert faults([]) < pages / 10
    assert faults(["0"]) > pages / 2


def test_a_workers_own_allocator_stays(installed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("LD_PRELOAD" in environment("run:1", 1, [])) == (installed is not None)
    assert "LD_PRELOAD" not in environment("run:1", 1, ["0"])
    monkeypatch.setenv("LD_PRELOAD", "libtcmalloc.so.4")
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    given = environment("run:1", 1, [])
    assert (given["LD_PRELOAD"], given["THP_MEM_ALLOC_ENABLE"]) == ("libtcmalloc.so.4", "0")


def test_a_stage_that_cannot_read_its_spec_says_so_in_an_event(tmp_path: Path) -> None:
    (tmp_path / "stage.json").write_text("{}")
    stage = StageProcess(tmp_path, run_id="r", attempt=1, threads=1, memory=0, devices=[])
    assert stage.ended(60)
    assert stage.finish() > 0
    assert isinstance(stage.result, Failed)
    assert (stage.result.code, stage.status) == ("bad_stage_file", "exit 1")


def test_the_journal_writes_the_latest_progress_every_metric_and_bounded_logs() -> None:
    written: list[Batch] = []
    journal = Journal(written.append, line_limit=3)
    for step in range(1, 6):
        journal.add(Progress(done=step, total=5, unit="steps"))
        journal.add(Metrics(step=step, values={"loss": 1.0 / step}))
        journal.add(Log(message=f"line {step}"))
    journal.flush()
    journal.flush()
    (batch,) = written
    assert batch.progress == {"done": 5, "total": 5, "unit": "steps", "phase": ""}
    assert batch.metrics == {("loss", step): 1.0 / step for step in range(1, 6)}
    assert [message for _, message in batch.logs] == ["line 1", "line 2", "further lines are not kept: 3 is the limit"]


@pytest.mark.parametrize(("text", "ids"), [("", []), ("0", ["0"]), ("0-3,6", ["0", "1", "2", "3", "6"])])
def test_devices_are_named_as_ranges(text: str, ids: list[str]) -> None:
    assert parse_devices(text) == ids


@pytest.mark.parametrize("text", ["a", "3-1", "0-", "0,0-2"])
def test_devices_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_devices(text)
