"""Held-out pairs in the browser: corrected one by one, never marked in bulk, and shown where one was changed."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.service import register_rows
from steerboard.datasets.tables import SampleRow
from steerboard.platform.database import transaction
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.stage.events import Inspected
from steerboard_contracts.watching.inspected_pairs import InspectedPair, LivePair
from support.rows.run_world import World

ROWS = [{"prompt": f"Question {n}?", "chosen": f"Yes {n}", "rejected": f"No {n}"} for n in range(16)]
TRAINS = {"run": "train", "method": "dpo", "inspect_pairs": 8}


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)


@pytest.fixture
def run(world: World, tmp_path: Path) -> tuple[uuid.UUID, dict[str, list[int]]]:
    """One that trains, with a wrong-sided pair in every row, and its rows by split."""
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        project.held_out_fraction = 0.5
        data = register_rows(session, project, name="pairs", kind="preferences", path=path, run_id=None).id
        rows = session.query(SampleRow.row, SampleRow.held_out).filter(SampleRow.dataset_id == data).all()
    split = {
        "train": [row for row, held_out in rows if not held_out],
        "held_out": [row for row, held_out in rows if held_out],
    }
    model = world.model()
    run_id = world.create("dpo", config=TRAINS, inputs={"data": InputRef(dataset=data), "model": InputRef(model=model)})
    claim = world.claim()
    assert claim is not None
    world.emit(claim, *(wrong_sided(row, name) for name, rows in split.items() for row in rows))  # type: ignore[arg-type]
    return run_id, split


def wrong_sided(row: int, split: str) -> Inspected:
    pair = InspectedPair(row=row, split=split, chosen=["Yes"], rejected=["No"])  # type: ignore[arg-type]
    wrong = LivePair(
        compared_with="reference",
        pair=pair,
        chosen_reward=-1.0 - row,
        rejected_reward=0.0,
        chosen_log_ratios=[-1.0],
        rejected_log_ratios=[0.0],
    )
    return Inspected(step=2, place=row, found=wrong)


def test_held_out_pairs_are_not_marked_in_bulk_and_a_corrected_one_is_shown_where_it_is_used(
    rows_page: Page, world: World, run: tuple[uuid.UUID, dict[str, list[int]]]
) -> None:
    page, (run_id, rows) = rows_page, run
    page.goto(f"/p/default/runs/{run_id}?tab=pairs")
    expect(page.get_by_role("status").filter(has_text="are wrong-sided")).to_be_visible()
    bulk = page.get_by_role("button", name=re.compile("^Mark"))
    expect(page.get_by_text(re.compile("^Held-out labels are what the model is measured against"))).to_be_visible()
    expect(bulk).to_have_count(0)
    first, second = sorted(rows["held_out"], reverse=True)[:2]
    for row in (first, second):
        page.get_by_role("group", name=f"Row {row}", exact=True).get_by_text("Flip").click()
    make = page.get_by_role("button", name="New dataset version")
    expect(page.get_by_text("2 held-out rows are marked to flip; one version may flip one")).to_be_visible()
    expect(make).to_be_disabled()
    page.get_by_role("group", name=f"Row {second}", exact=True).get_by_text("Keep").click()
    page.get_by_text(re.compile("^Trained on")).click()
    page.get_by_role("button", name=f"Mark {len(rows['train'])} wrong-sided: flip").click()
    expect(page.get_by_text(f"0 to drop, {len(rows['train']) + 1} to flip; 1 held out")).to_be_visible()
    make.click()
    page.get_by_role("link", name="Open the dataset").click()
    alert = page.get_by_role("alert").filter(has_text="Held-out rows were changed by people")
    expect(alert).to_contain_text("pairs-edited-1: 1 flipped")
    faults = faults_of(page, "changed-held-out")

    with transaction(world.sessions) as session:
        edited = get_dataset(session, session.get_one(Project, world.project.id), "pairs-edited-1").id
    inputs = {"data": InputRef(dataset=edited), "model": InputRef(model=world.model())}
    page.goto(f"/p/default/runs/{world.create('again', config=TRAINS, inputs=inputs)}")
    expect(alert).to_contain_text("pairs-edited-1: 1 flipped")
    page.goto(f"/p/default/runs/{run_id}")
    expect(page.get_by_role("heading", name="dpo")).to_be_visible()
    expect(alert).to_have_count(0)
    assert not faults, told(faults)
