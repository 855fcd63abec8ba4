"""A generation cut into shards over two workers gives the very rows, in the very order, of one that was not."""

from __future__ import annotations

import uuid

import pytest
from fault_stack import Stack
from sqlalchemy import select

from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction
from steerboard.runs.tables import Run, RunAttempt, RunOutput

GENERATE = {
    "run": "generate",
    "split": "all",
    "limit": 12,
    "decoding": {"temperature": 1.0, "n": 2, "max_new_tokens": 4},
    "batch_size": 4,
}


def rows_of(stack: Stack, run_id: uuid.UUID) -> tuple[int, str]:
    with transaction(stack.sessions) as session:
        dataset = session.scalars(
            select(Dataset).join(RunOutput, RunOutput.dataset_id == Dataset.id).where(RunOutput.run_id == run_id)
        ).one()
        return dataset.rows, dataset.content_hash


@pytest.mark.long
def test_shards_on_two_workers_make_the_dataset_that_one_run_makes(stack: Stack) -> None:
    whole = stack.create("whole", GENERATE)
    sharded = stack.create("sharded", {**GENERATE, "shards": 3})
    for name in ("one", "two"):
        stack.start_worker(name)
    for run in stack.finish(whole, sharded):
        assert run.state == "succeeded", run.reason
    assert rows_of(stack, sharded) == rows_of(stack, whole)
    with transaction(stack.sessions) as session:
        shards = session.scalars(select(Run).where(Run.parent_id == sharded)).all()
        workers = set(session.scalars(select(RunAttempt.worker)))
    assert workers == {"one", "two"}
    assert len(shards) == 3
    parent = stack.run(sharded)
    assert parent.device_seconds == sum(shard.device_seconds for shard in shards)
    assert parent.summary is not None
    assert parent.summary["rows"] == rows_of(stack, whole)[0]
