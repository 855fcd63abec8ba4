"""What a run kept of its pairs is read over HTTP, and marked pairs become a new version of its dataset."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from run_world import World

from steerboard.accounts.tables import Project
from steerboard.datasets.service import register_rows
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs import inputs
from steerboard.runs.results import outputs
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.stage import PairsOutput, StageOutput
from steerboard_contracts.watching.inspected_pairs import INDEX_FILE, InspectedPair, PairsIndex, StepPairs, step_file

API = "/api/v1/projects/default"
ROWS = [
    {"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}", "margin": 1.0, "id": n} for n in range(6)
]
MARGINS = {1: [0.5, -2.0, 1.0], 2: [1.5, -0.25, 2.0]}


@pytest.fixture
def run(world: World, store: ArtifactStore, tmp_path: Path) -> uuid.UUID:
    """Of three pairs, rows 1, 3 and 4 of its dataset, at two steps."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        project.held_out_fraction = 1e-9
        data = register_rows(session, project, name="pairs", kind="preferences", path=path, run_id=None).id
    refs = {"data": InputRef(dataset=data), "model": InputRef(model=world.model())}
    run_id = world.create("train", config={"run": "train", "method": "dpo"}, inputs=refs)
    folder = tmp_path / "stage" / "outputs" / "pairs"
    folder.mkdir(parents=True)
    pairs = [InspectedPair(row=row, split="train", chosen=["Yes", f" {row}"], rejected=["No"]) for row in (1, 3, 4)]
    index = PairsIndex(method="dpo", compared_with="reference", pairs=pairs, steps=[1, 2])
    (folder / INDEX_FILE).write_text(index.model_dump_json())
    for step, margins in MARGINS.items():
        found = StepPairs(
            step=step,
            chosen_rewards=margins,
            rejected_rewards=[0.0] * 3,
            chosen_log_ratios=[[0.25, one] for one in margins],
            rejected_log_ratios=[[-0.5]] * 3,
        )
        (folder / step_file(step)).write_text(found.model_dump_json())
    claim = world.claim()
    assert claim is not None
    with transaction(world.sessions) as session:
        claimed = claims.fenced(session, claim)
        given: list[StageOutput] = [PairsOutput(path="outputs/pairs", pairs=3, steps=[1, 2])]
        outputs.upload(store, given, tmp_path / "stage")
        outputs.register(session, store, claimed, inputs.resolve(session, claimed), given, tmp_path / "stage")
        attempt_outcomes.succeed(session, claimed, {}, 2.0)
    return run_id


def test_margins_and_tokens_of_each_step_are_read(client: TestClient, run: uuid.UUID) -> None:
    def get(path: str, status: int = 200) -> Any:
        answer = client.get(f"{API}/runs/{run}/pairs{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    assert get("") == {
        "dataset": "pairs",
        "compared_with": "reference",
        "steps": [1, 2],
        "held_out": 0,
        "train": 3,
    }
    assert [(one["row"], one["margin"]) for one in get("/1")] == [(3, -2.0), (1, 0.5), (4, 1.0)]
    assert [one["margin"] for one in get("/2")] == [-0.25, 1.5, 2.0]
    second, first = get("/1/rows?row=1&row=3&row=5")[::-1]
    assert (first["row"], second["row"]) == (3, 1)
    assert first["sample"]["sample"]["rejected"] == "No 3"
    assert first["chosen"] == [{"text": "Yes", "log_ratio": 0.25}, {"text": " 3", "log_ratio": -2.0}]
    assert "steps 1, 2" in get("/7", 404)["hint"]
    (output,) = client.get(f"{API}/runs/{run}").json()["outputs"]
    assert output["document"] == {"pairs": 3, "steps": [1, 2]}


def test_a_run_without_inspected_pairs_has_none(client: TestClient, world: World) -> None:
    answer = client.get(f"{API}/runs/{world.create('mixture')}/pairs")
    assert answer.status_code == 404
    assert "inspect_pairs" in answer.json()["hint"]


@pytest.mark.usefixtures("run")
def test_marked_pairs_are_dropped_or_flipped_in_a_new_version(client: TestClient) -> None:
    def edit(status: int = 201, **body: Any) -> Any:
        answer = client.post(f"{API}/datasets/pairs/edits", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    made = edit(drop=[4], flip=[3, 1])
    assert (made["name"], made["rows"]) == ("pairs-edited-1", 5)
    assert made["origin"]["dropped"] == {"marked": 1}
    assert made["origin"]["flipped_rows"] == [1, 3]
    items = client.get(f"{API}/datasets/{made['name']}/samples").json()["items"]
    assert [item["extra"]["id"] for item in items] == [0, 1, 2, 3, 5]
    assert [item["sample"]["chosen"] for item in items] == ["Yes 0", "No 1", "Yes 2", "No 3", "Yes 5"]
    # The margin of a flipped pair was of the other order.
    assert ["margin" in item["sample"] for item in items] == [True, False, True, False, True]
    (dropped,) = client.get(f"{API}/datasets/{made['name']}/dropped").json()["items"]
    assert (dropped["row"], dropped["rule"], dropped["sample"]["sample"]["chosen"]) == (4, "marked", "Yes 4")
    assert client.get(f"{API}/datasets/pairs").json()["rows"] == 6
    assert edit(422, drop=[6])["code"] == "unknown_rows"
    assert edit(422, drop=list(range(6)))["code"] == "empty_selection"
    assert "both to be dropped" in edit(422, drop=[1], flip=[1])["detail"] + str(edit(422, drop=[1], flip=[1]))
    edit(422)
