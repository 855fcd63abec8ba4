"""A run that is measured on held-out rows that people changed names these, also where a run upstream made its data."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from steerboard.datasets.held_out_changes import as_origin
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import RunOutput
from steerboard_contracts.held_out_changes import HeldOutChange
from support.rows.run_world import World


def test_a_run_names_the_versions_of_its_data_that_changed_held_out_rows(client: TestClient, world: World) -> None:
    edited, plain = world.dataset(), world.dataset()
    change = HeldOutChange(dataset="edited", dataset_id=edited, flipped=1, dropped=0)
    with transaction(world.sessions) as session:
        session.get_one(Dataset, edited).origin = {"type": "edit", **as_origin([change])}
    direct = world.create("direct", inputs={"parts.0": InputRef(dataset=edited), "parts.1": InputRef(dataset=plain)})
    mixed = world.create("mixed", inputs={"parts.0": InputRef(dataset=plain)})
    with transaction(world.sessions) as session:
        session.add(RunOutput(run_id=mixed, name="data", type="dataset", dataset_id=edited))
    after = world.create("after", inputs={"parts.0": InputRef(run=mixed)})

    def named(run: Any) -> list[str]:
        return [
            change["dataset"]
            for change in client.get(f"/api/v1/projects/default/runs/{run}").json()["held_out_changes"]
        ]

    assert [named(run) for run in (direct, mixed, after)] == [["edited"], [], ["edited"]]
