"""The machine that began a training is gone with its disk: another one resumes from the checkpoint in the store."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from fault_stack import SFT, Stack, Worker
from sqlalchemy import select
from test_nodes import rendezvous

from steerboard.platform.database import transaction
from steerboard.runs.tables import RunCheckpoint
from support.patience import PATIENCE
from support.servers.s3_server import BUCKET, S3Server

SHORT_LEASE = {"STEERBOARD_LEASE_SECONDS": "4"}


@pytest.fixture
def artifact_url(s3: S3Server) -> str:
    return f"s3://{BUCKET}/team"


def stored_step(stack: Stack, run_id: uuid.UUID) -> int:
    with transaction(stack.sessions) as session:
        return max(session.scalars(select(RunCheckpoint.step).where(RunCheckpoint.run_id == run_id)), default=0)


def wait_until_stored(stack: Stack, run_id: uuid.UUID, step: int) -> None:
    stack.wait(lambda: stored_step(stack, run_id) >= step, 150, f"step {step} was not stored", pause=0.002)


def lose(stack: Stack, run_id: uuid.UUID, worker: Worker, home: Path) -> None:
    """The machine and all that it had."""
    worker.stop()
    stack.wait(lambda: not stack.stage_pids(run_id), 10, "the stage outlived its worker")
    shutil.rmtree(home)


def resumed_step(stack: Stack, run_id: uuid.UUID) -> int:
    (line,) = (line for line in stack.log_lines(run_id) if "resumed from step" in line)
    return int(line.split()[3])


@pytest.mark.long
def test_a_run_whose_first_workers_disk_is_deleted_ends_as_if_nothing_had_happened(
    stack: Stack, s3: S3Server, tmp_path: Path
) -> None:
    expected = stack.undisturbed(SFT)
    run_id = stack.create("sft", SFT)
    home = tmp_path / "first"
    first = stack.start_worker("first", STEERBOARD_HOME=str(home), **SHORT_LEASE)
    wait_until_stored(stack, run_id, 8)
    lose(stack, run_id, first, home)
    known = stored_step(stack, run_id)
    stack.start_worker("second", STEERBOARD_HOME=str(tmp_path / "second"), **SHORT_LEASE)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert resumed_step(stack, run_id) == known
    assert stack.result(run_id) == expected
    assert stored_step(stack, run_id) == 0
    start = f"team/checkpoints/{run_id}/"
    stack.wait(lambda: not any(name.startswith(start) for name in s3.objects()), 10, "checkpoints were left")


@pytest.mark.long
def test_a_worker_that_is_stopped_leaves_its_last_checkpoint_in_the_store(stack: Stack, tmp_path: Path) -> None:
    """A pod is stopped like this before its machine goes."""
    run_id = stack.create("sft", SFT, max_attempts=1)
    home = tmp_path / "first"
    first = stack.start_worker("first", STEERBOARD_HOME=str(home))
    wait_until_stored(stack, run_id, 4)
    first.process.terminate()
    assert first.process.wait(timeout=PATIENCE) == 0
    last = max(int(path.name.rpartition("-")[2]) for path in home.glob("work/*/checkpoints/a1-step-*"))
    assert stored_step(stack, run_id) == last
    shutil.rmtree(home)
    stack.start_worker("second", STEERBOARD_HOME=str(tmp_path / "second"))
    (run,) = stack.finish(run_id)
    assert run.state == "succeeded", run.reason
    assert resumed_step(stack, run_id) == last
    assert stack.result(run_id) == stack.undisturbed(SFT)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero3"])
def test_a_first_node_lost_with_its_disk_is_replaced_by_one_that_has_nothing(
    stack: Stack, tmp_path: Path, strategy: str
) -> None:
    """What is spread over two nodes is gathered in one checkpoint, which the first node stores."""
    expected = stack.undisturbed(SFT)
    address = rendezvous()

    def start(node: int, home: str) -> Worker:
        options = ["--nodes", "2", "--node", str(node), "--rendezvous", address]
        return stack.start_worker(home, options=options, STEERBOARD_HOME=str(tmp_path / home))

    first, _ = start(0, "zero"), start(1, "one")
    run_id = stack.create("sft", SFT | {"strategy": strategy})
    wait_until_stored(stack, run_id, 9)
    lose(stack, run_id, first, tmp_path / "zero")
    known = stored_step(stack, run_id)
    start(0, "new-zero")
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert resumed_step(stack, run_id) == known
    assert stack.result(run_id).losses == {k: pytest.approx(v, rel=1e-4) for k, v in expected.losses.items()}
