"""Things that are older than the newest 200 are found by a part of their name."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import insert
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id, transaction


@pytest.fixture
def many(sessions: sessionmaker[Session], project: Project) -> None:
    """A dataset of pairs, and 205 newer ones of instructions."""
    kinds = [("needle-pairs", "preferences"), *((f"hay-{n}", "instructions") for n in range(205))]
    with transaction(sessions) as session:
        rows = [
            {"id": new_id(), "project_id": project.id, "name": name, "kind": kind, "content_hash": name, "rows": 9}
            | {"held_out_rows": 0, "origin": {}}
            for name, kind in kinds
        ]
        session.execute(insert(Dataset), rows)


@pytest.mark.usefixtures("many")
def test_a_dataset_that_is_older_than_the_newest_200_is_found_by_a_part_of_its_name(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/datasets")
    page.get_by_role("textbox", name="Search names, tags and notes").fill("needle")
    expect(page.get_by_role("link", name="needle-pairs")).to_be_visible()
