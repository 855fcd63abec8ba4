"""Versions of a dataset, and what changed from one to another."""

from __future__ import annotations

import json
import re
from typing import Any

from fastapi.testclient import TestClient
from page_checks import faults_of, told
from playwright.sync_api import Page, expect

BASE = "/api/v1/projects/default/datasets"
ROWS = [
    {"prompt": f"Is {n} an even number?", "chosen": f"Yes, {n} is one of them.", "rejected": f"No, {n} is odd."}
    for n in range(30)
]


def import_rows(client: TestClient, name: str, rows: list[dict[str, Any]]) -> None:
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    files = {"file": (f"{name}.jsonl", body)}
    answer = client.post(f"{BASE}/import", data={"name": name, "clean": "false"}, files=files)
    assert answer.status_code == 201, answer.text


def test_what_changed_between_versions_is_shown_row_by_row(client: TestClient, rows_page: Page) -> None:
    import_rows(client, "pairs", ROWS)
    import_rows(client, "again", [*ROWS[:7], {**ROWS[7], "chosen": "Yes, 7 is surely one of them."}, *ROWS[8:]])
    body = {"drop": list(range(24)), "flip": [25]}
    assert client.post(f"{BASE}/pairs/edits", json=body).status_code == 201
    page = rows_page
    page.goto("/p/default/datasets/pairs-edited-1")
    page.get_by_role("tab", name="Versions").click()
    family = page.get_by_role("table", name="Versions, the oldest first")
    expect(family.get_by_role("row")).to_have_count(3)
    rows = page.get_by_role("list", name="Rows that differ").get_by_role("listitem")
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(25)
    expect(page.get_by_text("5 rows the same")).to_be_visible()
    page.get_by_text("1 changed").click()
    expect(page).to_have_url(re.compile("change=changed"))
    page.reload()
    expect(rows).to_have_count(1)
    row = rows.first
    expect(row).to_contain_text("row 25 of pairs → row 1 of pairs-edited-1")
    before, after = row.get_by_role("group", name="chosen before"), row.get_by_role("group", name="chosen after")
    expect(before.locator("mark")).to_have_text(["Yes", "one of them"])
    expect(after.locator("mark")).to_have_text(["No", "odd"])
    faults = faults_of(page, "versions")
    page.goto("/p/default/datasets/again?view=versions&before=pairs")
    expect(page.get_by_text("their rows are matched by content")).to_be_visible()
    expect(rows).to_have_count(1)
    expect(rows.get_by_role("group", name="chosen after").locator("mark")).to_have_text(["surely "])
    rows.get_by_role("link", name="row 7 of again").click()
    expect(page.get_by_role("dialog")).to_contain_text("Is 7 an even number?")
    page.goto("/p/default/datasets/pairs?view=versions")
    expect(page.get_by_role("combobox", name="Compare with")).to_have_value("")
    page.get_by_role("combobox", name="Compare with").click()
    page.get_by_role("option", name="pairs-edited-1").click()
    expect(rows).to_have_count(20)
    assert not faults, told(faults)
