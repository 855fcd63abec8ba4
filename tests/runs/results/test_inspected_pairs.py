"""What a run kept of its pairs is read over HTTP, and marked pairs become a new version of its dataset."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from steerboard.accounts.tables import Project
from steerboard.datasets.service import register_rows
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs import inputs
from steerboard.runs.results import outputs
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import LivePairRow
from steerboard_contracts.stage.events import Inspected
from steerboard_contracts.stage.outputs import PairsOutput, StageOutput
from steerboard_contracts.watching.inspected_pairs import (
    INDEX_FILE,
    InspectedPair,
    LivePair,
    PairsIndex,
    StepPairs,
    step_file,
)
from support.rows.run_world import World

API = "/api/v1/projects/default"
ROWS = [
    {"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}", "margin": 1.0, "id": n} for n in range(6)
]
MARGINS = {1: [0.5, -2.0, 1.0], 2: [1.5, -0.25, 2.0]}


THUMBS = [{"prompt": f"Question {n}?", "response": f"Answer {n}", "desirable": n % 2 == 0} for n in range(4)]


def told(step: int, place: int, row: int, ratio: float, desirable: bool) -> Inspected:
    pair = InspectedPair(
        row=row, split="train", chosen=["An\x00"] if desirable else None, rejected=None if desirable else ["An"]
    )
    live = LivePair(
        compared_with="reference",
        pair=pair,
        chosen_reward=ratio if desirable else None,
        rejected_reward=None if desirable else ratio,
        chosen_log_ratios=[ratio] if desirable else [],
        rejected_log_ratios=[] if desirable else [ratio],
    )
    return Inspected(step=step, place=place, found=live)


@pytest.fixture
def register(world: World, tmp_path: Path) -> Any:
    """Rows of a file, all to train on, as a dataset; returns its id."""

    def make(name: str, kind: Any, rows: list[dict[str, Any]]) -> uuid.UUID:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with transaction(world.sessions) as session:
            project = session.get_one(Project, world.project.id)
            project.held_out_fraction = 1e-9
            return register_rows(session, project, name=name, kind=kind, path=path, run_id=None).id

    return make


@pytest.fixture
def run(world: World, store: ArtifactStore, tmp_path: Path, register: Any) -> uuid.UUID:
    """A run with three inspected pairs, rows 1, 3 and 4 of its dataset, at two steps."""
    refs = {"data": InputRef(dataset=register("pairs", "preferences", ROWS)), "model": InputRef(model=world.model())}
    run_id = world.create("train", config={"run": "train", "method": "dpo"}, inputs=refs)
    folder = tmp_path / "stage" / "outputs" / "pairs"
    folder.mkdir(parents=True)
    pairs = [InspectedPair(row=row, split="train", chosen=["Yes", f" {row}"], rejected=["No"]) for row in (1, 3, 4)]
    index = PairsIndex(method="dpo", compared_with="reference", pairs=pairs, steps=[1, 2])
    (folder / INDEX_FILE).write_text(index.model_dump_json())
    for step, margins in MARGINS.items():
        steps = StepPairs(
            step=step,
            chosen_rewards=margins,
            rejected_rewards=[0.0] * 3,
            chosen_log_ratios=[[0.25, margin] for margin in margins],
            rejected_log_ratios=[[-0.5]] * 3,
        )
        (folder / step_file(step)).write_text(steps.model_dump_json())
    claim = world.claim()
    assert claim is not None
    world.emit(claim, told(2, 0, 1, 1.5, True))
    with transaction(world.sessions) as session:
        claimed = claims.fenced(session, claim)
        given: list[StageOutput] = [PairsOutput(path="outputs/pairs", pairs=3, steps=[1, 2])]
        outputs.upload(store, given, tmp_path / "stage")
        outputs.register(session, store, claimed, inputs.resolve(session, claimed), given, tmp_path / "stage")
        attempt_outcomes.succeed(session, claimed, {}, 2.0)
    return run_id


def test_margins_and_tokens_of_each_step_are_read(client: TestClient, world: World, run: uuid.UUID) -> None:
    def get(path: str, status: int = 200) -> Any:
        answer = client.get(f"{API}/runs/{run}/pairs{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    assert get("") == {
        "dataset": "pairs",
        "of": "pairs",
        "compared_with": "reference",
        "steps": [1, 2],
        "held_out": 0,
        "train": 3,
    }
    assert [(pair["row"], pair["margin"]) for pair in get("/1")] == [(3, -2.0), (1, 0.5), (4, 1.0)]
    assert [pair["margin"] for pair in get("/2")] == [-0.25, 1.5, 2.0]
    second, first = get("/1/rows?row=1&row=3&row=5")[::-1]
    assert (first["row"], second["row"]) == (3, 1)
    assert first["sample"]["sample"]["rejected"] == "No 3"
    assert first["chosen"] == [{"text": "Yes", "log_ratio": 0.25}, {"text": " 3", "log_ratio": -2.0}]
    assert "steps 1, 2" in get("/7", 404)["hint"]
    (output,) = client.get(f"{API}/runs/{run}").json()["outputs"]
    assert output["document"] == {"pairs": 3, "steps": [1, 2]}
    with transaction(world.sessions) as session:
        assert session.scalar(select(func.count()).select_from(LivePairRow)) == 0, "the output has them now"


def test_a_run_that_goes_on_shows_the_newest_evaluated_step(client: TestClient, world: World, register: Any) -> None:
    refs = {"data": InputRef(dataset=register("thumbs", "unpaired", THUMBS)), "model": InputRef(model=world.model())}
    run = world.create("train", config={"run": "train", "method": "kto", "inspect_pairs": 4}, inputs=refs)

    def get(path: str, status: int = 200) -> Any:
        answer = client.get(f"{API}/runs/{run}/pairs{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    assert (get("")["steps"], get("")["train"]) == ([], 0)
    claim = world.claim()
    world.emit(claim, *(told(2, place, row, 1.0, row % 2 == 0) for place, row in enumerate((0, 1, 3))))
    assert get("")["steps"] == [2]
    world.emit(claim, told(4, 0, 0, -0.5, True), told(4, 1, 1, 0.75, False), told(4, 2, 3, -2.0, False))
    about = get("")
    assert (about["of"], about["steps"], about["train"], about["dataset"]) == ("answers", [4], 3, "thumbs")
    # An answer that was marked good and is less likely, and one that was marked bad and is likelier, are wrong-sided.
    assert [(pair["row"], pair["margin"]) for pair in get("/4")] == [(1, -0.75), (0, -0.5), (3, 2.0)]
    (bad, good) = get("/4/rows?row=0&row=1")
    assert (good["chosen_reward"], good["rejected_reward"], good["rejected"]) == (-0.5, None, [])
    assert bad["rejected"] == [{"text": "An", "log_ratio": 0.75}]
    assert bad["sample"]["sample"]["response"] == "Answer 1"
    assert "steps 4" in get("/2", 404)["hint"]


def test_a_turned_thumb_is_the_other_one_in_the_new_version(client: TestClient, register: Any) -> None:
    register("thumbs", "unpaired", THUMBS)
    answer = client.post(f"{API}/datasets/thumbs/edits", json={"drop": [0], "flip": [1, 2]})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["kind"], answer.json()["rows"]) == ("unpaired", 3)
    items = client.get(f"{API}/datasets/{answer.json()['name']}/samples").json()["items"]
    assert [(item["sample"]["response"], item["sample"]["desirable"]) for item in items] == [
        *(("Answer 1", True), ("Answer 2", False), ("Answer 3", False))
    ]
    (dropped,) = client.get(f"{API}/datasets/{answer.json()['name']}/dropped").json()["items"]
    assert (dropped["rule"], dropped["sample"]["sample"]["response"]) == ("marked", "Answer 0")


def test_labelled_answers_have_nothing_to_flip(client: TestClient, register: Any) -> None:
    rows = [{"prompt": "Why?", "response": "So.", "source": "people", "reward": float(n)} for n in range(2)]
    register("graded", "labelled", rows)
    answer = client.post(f"{API}/datasets/graded/edits", json={"drop": [0]})
    assert (answer.status_code, answer.json()["code"]) == (422, "wrong_kind")


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
