"""An attempt keeps the kind of device that it ran on, for its worker may be gone when someone compares times."""

from __future__ import annotations

from typing import Any

import pytest

from steerboard.platform.database import new_id, transaction
from steerboard.runs.tables import RunAttempt, WorkerRow
from support.rows.run_world import World

H100 = {"id": "0", "name": "NVIDIA H100"}


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        ({"ids": [], "gpus": []}, "CPU"),
        ({"ids": ["0", "1"], "gpus": [H100, {**H100, "id": "1"}]}, "NVIDIA H100"),
        ({"ids": ["0"], "gpus": []}, None),
    ],
)
def test_an_attempt_keeps_the_kind_of_its_workers_devices(world: World, devices: dict[str, Any], kind: str) -> None:
    worker = new_id()
    with transaction(world.sessions) as session:
        session.add(WorkerRow(id=worker, name="w1", pool="default", host="h", pid=1, devices=devices))
    run = world.create()
    claim = world.claim(owner=str(worker))
    assert claim is not None
    with transaction(world.sessions) as session:
        assert session.get_one(RunAttempt, (run, claim.attempt)).device == kind
