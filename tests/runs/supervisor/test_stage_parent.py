"""A stage that is forked warm is the stage that would have been started cold, and ends with whatever it depends on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from steerboard_contracts import guardian
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.stage.events import Metrics, Succeeded
from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec
from steerboard_workers.stage_parent.identity import MARK
from steerboard_workers.supervisor.process import StageProcess, environment
from steerboard_workers.supervisor.warm_start import StageParent
from support.patience import wait_until

BASE = {
    "run": "base",
    "source": "random:tiny-llama",
    "vocabulary": 400,
    "hidden": 32,
    "layers": 1,
    "heads": 2,
    "max_length": 64,
}
SFT = {"run": "train", "method": "sft", "lr": 1e-3, "batch": 4, "max_steps": 3, "precision": "fp32", "lora": None}
ENDLESS = SFT | {"max_steps": 1_000_000, "epochs": 100_000, "checkpoint_every": 0, "checkpoint_seconds": 0}
MEMORY = 4 << 30

# Every Python of these tests records its state when it ends; only a stage does.
WITNESS = r"""
import atexit, json, os, resource, signal, sys

def look():
    if "SNAPSHOT_TOKEN" not in os.environ:
        return
    links = [f"/proc/self/fd/{one}" for one in os.listdir("/proc/self/fd")]
    files = sorted(os.readlink(one).partition(":")[0] for one in links if os.path.lexists(one))
    seen = {
        "environment": dict(os.environ),
        "files": files,
        "folder": os.getcwd(),
        "path": sys.path[0],
        "signals": {str(number): str(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
        "limits": resource.getrlimit(resource.RLIMIT_DATA),
        "first_taken": open("/proc/self/oom_score_adj").read(),
        "led_by": os.getpgid(0) == os.getsid(0) == os.getppid(),
        "seed": sys.modules["torch"].initial_seed() if "torch" in sys.modules else None,
        "command": open("/proc/self/cmdline").read().strip("\0").split("\0"),
        "mark": [one for one in open("/proc/self/environ").read().split("\0") if one.startswith("STEERBOARD_")],
    }
    needle = os.environ.get("NEEDLE_TOKEN", "")[::-1].encode()
    if needle:
        seen["found"] = 0
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                if rights.startswith("rw"):
                    start, end = (int(one, 16) for one in span.split("-"))
                    memory.seek(start)
                    copy = bytearray(end - start)
                    try:
                        memory.readinto(copy)
                        # `needle` itself is one of them.
                        seen["found"] += copy.count(needle)
                    except (OSError, ValueError):
                        pass
                    copy[:] = bytes(len(copy))  # an allocator may keep it, to be found in turn
    with open(os.environ["SNAPSHOT_TOKEN"], "w") as file:
        json.dump(seen, file)

atexit.register(look)
"""


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the witness; what every process of these tests is started with."""
    folder = tmp_path_factory.mktemp("witness")
    (folder / "sitecustomize.py").write_text(WITNESS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        yield folder


@pytest.fixture(scope="module")
def parent(surroundings: Path) -> Iterator[StageParent]:
    made = own_parent()
    yield made
    made.close()


@pytest.fixture(scope="module")
def inputs(parent: StageParent, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Tiny data, and a tiny model with random weights."""
    folder = tmp_path_factory.mktemp("inputs")
    rows = [
        {"prompt": [{"role": "user", "content": f"Say {word} {row}"}], "response": word, "row": row, "split": "train"}
        for row, word in enumerate(["red", "green", "blue", "apple"] * 10)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = DatasetInput(
        name="rows", path=str(folder / "rows.jsonl"), kind="instructions", rows=len(rows), content_hash="rows"
    )
    stage = start(folder / "base", BASE, {"data.0": data}, parent)
    finish(stage)
    path = str(folder / "base" / "outputs" / "model")
    return {"data": data, "model": ModelInput(name="base", path=path, content_hash="base")}


def own_parent() -> StageParent:
    os.environ.pop("PYTEST_CURRENT_TEST", None)  # another one each time
    return StageParent(environment("", 1, []))


def start(
    folder: Path,
    config: dict[str, Any],
    inputs: dict[str, Any],
    parent: StageParent | None,
    *,
    memory: int = MEMORY,
    threads: int = 1,
    variables: dict[str, str] | None = None,
) -> StageProcess:
    (folder / "checkpoints").mkdir(parents=True)
    spec = StageSpec(
        run_id=folder.name, name="stage", config=RUN_CONFIG.validate_python(config), inputs=inputs, threads=threads
    )
    (folder / STAGE_FILE).write_text(spec.model_dump_json())
    os.environ.pop("PYTEST_CURRENT_TEST", None)  # another one each time
    stage = StageProcess(
        folder,
        run_id=folder.name,
        attempt=1,
        threads=threads,
        memory=memory,
        devices=[],
        variables=variables,
        parent=parent,
    )
    stage.extend(guardian.now() + 300)
    return stage


def finish(stage: StageProcess) -> dict[int, float]:
    """Its losses by step."""
    assert stage.ended(120)
    stage.finish()
    assert isinstance(stage.result, Succeeded), (stage.status, stage.tail)
    assert stage.status == "exit 0"
    events = [stage.events.get_nowait() for _ in range(stage.events.qsize())]
    return {event.step: event.values["loss"] for event in events if isinstance(event, Metrics)}


def weights(folder: Path) -> dict[str, str]:
    """Digests of all files of a trained model."""
    model = folder / "outputs" / "model"
    return {
        str(path.relative_to(model)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(model.rglob("*"))
        if path.is_file()
    }


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def training(stage: StageProcess) -> int:
    """Wait until it trains. The process id of the stage itself."""
    wait_until(lambda: any(isinstance(event, Metrics) for event in list(stage.events.queue)))
    (pid,) = Path(f"/proc/{stage.pid}/task/{stage.pid}/children").read_text().split()
    return int(pid)


@pytest.mark.long
def test_a_warm_stage_gives_what_a_cold_one_gives_bit_for_bit_and_stands_as_it_does(
    parent: StageParent, inputs: dict[str, Any], tmp_path: Path
) -> None:
    seen, given_out = {}, {}
    for name, given in (("cold", None), ("warm", parent)):
        # Either may be given a credential.
        stage = start(tmp_path / name, SFT, inputs, given, variables=snapshot(tmp_path / f"{name}.json"))
        assert stage.warm is (given is not None)
        given_out[name] = finish(stage)
        text = (tmp_path / f"{name}.json").read_text()
        seen[name] = json.loads(text.replace(f"/{name}", "/NAME").replace(f"{name}:1", "NAME:1"))
    assert given_out["cold"] == given_out["warm"] != {}
    assert weights(tmp_path / "cold") == weights(tmp_path / "warm") != {}
    assert seen["warm"] == seen["cold"]
    assert seen["warm"]["mark"] == [f"{MARK}=NAME:1"]
    assert set(seen["warm"]["files"]) <= {"pipe", "/dev/null", "anon_inode"}


def snapshot(path: Path, **variables: str) -> dict[str, str]:
    return {"SNAPSHOT_TOKEN": str(path), **variables}


@pytest.mark.long
def test_stages_with_another_number_of_threads_are_forked_too(
    surroundings: Path, inputs: dict[str, Any], tmp_path: Path
) -> None:
    parent = own_parent()
    try:
        for name, given in (("cold", None), ("warm", parent)):
            stage = start(tmp_path / name, SFT, inputs, given, threads=2, variables=snapshot(tmp_path / f"{name}.json"))
            assert stage.warm is (given is not None)
            finish(stage)
            seen = json.loads((tmp_path / f"{name}.json").read_text())
            assert seen["environment"]["OMP_NUM_THREADS"] == "2"
        assert weights(tmp_path / "cold") == weights(tmp_path / "warm") != {}
    finally:
        parent.close()


def test_nothing_of_a_former_run_is_in_a_stages_memory(
    parent: StageParent, inputs: dict[str, Any], tmp_path: Path
) -> None:
    secret = f"sesame-{os.getpid()}-{time.monotonic_ns()}"
    counts = []
    for name, told in (("former", {"HF_TOKEN": secret}), ("later", {})):
        variables = snapshot(tmp_path / f"{name}.json", NEEDLE_TOKEN=secret[::-1], **told)
        stage = start(tmp_path / name, SFT, inputs, parent, variables=variables)
        assert stage.warm
        finish(stage)
        counts.append(json.loads((tmp_path / f"{name}.json").read_text())["found"])
    assert counts[0] > 1, "the run that was told it"
    assert counts[1] <= 1, "the needle itself"


@pytest.mark.long
def test_stages_go_on_without_their_parent_and_the_next_one_starts(
    surroundings: Path, inputs: dict[str, Any], tmp_path: Path
) -> None:
    parent = own_parent()
    long = SFT | {"max_steps": 300, "epochs": 1000}
    try:
        warm = start(tmp_path / "warm", long, inputs, parent)
        training(warm)
        assert parent.pid is not None
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: parent.pid is None)
        next_one = start(tmp_path / "next", SFT, inputs, parent)
        assert not next_one.warm
        finish(next_one)
        assert warm.ended(0) is False or warm.status == "exit 0"
        losses = finish(warm)
        again = start(tmp_path / "again", long, inputs, parent)
        assert again.warm
        assert finish(again) == losses
        assert weights(tmp_path / "again") == weights(tmp_path / "warm")
    finally:
        parent.close()


def test_a_killed_guardian_takes_the_warm_stage_along(
    parent: StageParent, inputs: dict[str, Any], tmp_path: Path
) -> None:
    stage = start(tmp_path / "one", ENDLESS, inputs, parent)
    pid = training(stage)
    os.kill(stage.pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid))
    assert stage.ended(5)
    stage.finish()
    assert stage.status is None


def test_a_warm_stage_ends_with_its_lease(parent: StageParent, inputs: dict[str, Any], tmp_path: Path) -> None:
    stage = start(tmp_path / "one", ENDLESS, inputs, parent)
    pid = training(stage)
    stage.extend(guardian.now() + 0.3)
    wait_until(lambda: not alive(pid))
    assert stage.ended(5)
    stage.finish()
    assert stage.status == "lease over"


def test_a_warm_stage_that_uses_too_much_memory_is_killed(
    parent: StageParent, inputs: dict[str, Any], tmp_path: Path
) -> None:
    # Less than torch has when it is imported; it is shared, and counts all the same.
    stage = start(tmp_path / "one", ENDLESS, inputs, parent, memory=100 << 20)
    assert stage.warm
    assert stage.ended(60)
    stage.finish()
    assert str(stage.status).startswith(("memory", "exit")), stage.status
    assert not isinstance(stage.result, Succeeded)


# Argument: folder of a stage. Prints the ids of the parent, the guardian and the stage.
WORKER = """
import sys, time
from pathlib import Path
from steerboard_contracts import guardian
from steerboard_workers.supervisor.process import StageProcess, environment
from steerboard_workers.supervisor.warm_start import StageParent
parent = StageParent(environment("", 1, []))
folder = Path(sys.argv[1])
stage = StageProcess(folder, run_id="w", attempt=1, threads=1, memory=4 << 30, devices=[], parent=parent)
assert stage.warm
print(parent.pid, stage.pid, flush=True)
time.sleep(1000)
"""


def parents_of_stages(worker: int) -> list[int]:
    """A worker also has children for a moment, such as the one that looks for libraries."""
    pids = []
    for child in psutil.Process(worker).children():
        with suppress(psutil.NoSuchProcess):
            pids += [child.pid] if "steerboard_workers.stage_parent" in child.cmdline() else []
    return pids


@pytest.mark.parametrize("importing", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_killed_worker_leaves_neither_parent_nor_stage(
    inputs: dict[str, Any], tmp_path: Path, importing: bool
) -> None:
    prepared = start(tmp_path / "one", ENDLESS, inputs, None)
    prepared.end()
    command = [sys.executable, "-c", WORKER, str(tmp_path / "one")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as worker:
        assert worker.stdout is not None
        if importing:
            wait_until(lambda: parents_of_stages(worker.pid))
            pids = parents_of_stages(worker.pid)
        else:
            pids = [int(word) for word in worker.stdout.readline().split()]
            wait_until(lambda: Path(f"/proc/{pids[1]}/task/{pids[1]}/children").read_text())
            pids += [int(pid) for pid in Path(f"/proc/{pids[1]}/task/{pids[1]}/children").read_text().split()]
            assert len(pids) == 3
        assert all(map(alive, pids))
        worker.kill()
        worker.wait()
        wait_until(lambda: not any(map(alive, pids)), seconds=20 if importing else 5)


@pytest.mark.long
def test_a_worker_that_differs_from_the_parent_starts_its_stages_anew(
    parent: StageParent, inputs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    stage = start(tmp_path / "one", SFT, inputs, parent)
    assert not stage.warm
    finish(stage)
    monkeypatch.delenv("HF_HOME")
    mask = os.umask(0o077)
    try:
        stage = start(tmp_path / "two", SFT, inputs, parent)
    finally:
        os.umask(mask)
    assert not stage.warm
    finish(stage)


@pytest.mark.long
def test_code_that_has_changed_is_run_as_it_is_now(
    inputs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "sitecustomize.py"
    code.write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parent = own_parent()
    try:
        finish(start(tmp_path / "before", SFT, inputs, parent))
        code.write_text("import sys")
        changed = start(tmp_path / "changed", SFT, inputs, parent)
        assert not changed.warm
        finish(changed)
        after = start(tmp_path / "after", SFT, inputs, parent)
        assert after.warm
        finish(after)
    finally:
        parent.close()


def test_a_worker_that_gave_up_waiting_has_no_second_stage_in_its_folder(
    parent: StageParent, inputs: dict[str, Any], tmp_path: Path
) -> None:
    prepared = start(tmp_path / "one", SFT, inputs, None)
    prepared.end()
    ends = [os.pipe() for _ in range(4)]
    others = [ends[3][1]]
    standard = (ends[0][0], ends[1][1], ends[2][1])
    command = [sys.executable, "-m", "steerboard_workers.stages", str(tmp_path / "one")]
    terms = guardian.Terms(memory=MEMORY, allocated=MEMORY, leased=True)
    made = parent.fork(command, tmp_path / "one", environment("one:1", 1, []), terms, standard, others)
    assert made is not None
    for descriptor in (*standard, *others, ends[0][1]):  # without a first deadline
        os.close(descriptor)
    made.wait()
    made.reap()
    assert os.read(ends[1][0], 100) == b""
    assert not (tmp_path / "one" / "outputs").exists()
    for descriptor in (ends[1][0], ends[2][0], ends[3][0]):
        os.close(descriptor)
