"""Imports that are not finished: what the page recognises, and what each of them lacks."""

from __future__ import annotations

import json
from typing import Any

from fastapi.testclient import TestClient
from page_checks import faults_of, told
from playwright.sync_api import Page, expect

IMPORTS = "/api/v1/projects/default/imports"


def begin(client: TestClient, name: str, rows: list[dict[str, Any]]) -> str:
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    made = client.post(IMPORTS, data={"name": name}, files={"file": (f"{name}.jsonl", body)})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def test_two_answers_and_a_winner_are_recognised_and_unfinished_imports_tell_what_they_lack(
    client: TestClient, rows_page: Page
) -> None:
    votes = [
        {"prompt": f"Is {n} even?", "response_a": f"Yes, {n} is.", "response_b": f"No, {n} is odd.", "winner": winner}
        for n, winner in enumerate(("a", "b", "tie"))
    ]
    begin(client, "votes", votes)
    begin(client, "riddles", [{"riddle": "Who?", "chosen": "I", "rejected": "You"}])
    page = rows_page
    page.goto("/p/default/datasets")
    unfinished = page.get_by_role("region", name="Unfinished imports")
    expect(unfinished).to_contain_text("no column was found for prompt")
    expect(unfinished.get_by_role("link", name="Map its columns")).to_be_visible()
    faults = faults_of(page, "unfinished imports")
    unfinished.get_by_role("link", name="Check its rows").click()
    expect(page.get_by_role("alert").filter(has_text="Recognised: two answers and a winner")).to_contain_text("ties")
    preview = page.get_by_role("group", name="Preview")
    expect(preview).to_contain_text("No, 1 is odd.")
    expect(preview).to_contain_text("dropped: tie")
    expect(page.get_by_role("combobox", name="Kind")).to_have_value("preferences")
    faults |= faults_of(page, "recognised layout")
    assert not faults, told(faults)
