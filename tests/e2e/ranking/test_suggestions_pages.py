"""A judge's suggestion at an annotator's desk, and agreement with it on the page of quality."""

from __future__ import annotations

from typing import Any

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from ranking_desks import ENTRANTS, EVALUATION, ITEMS, Desks, jsonl

JUDGE = "zebra-judge"


def enter_judge(world: World) -> None:
    """A judge who prefers what is best, and is called almost like it."""
    rows: list[dict[str, Any]] = [
        {
            "question_id": 81 + n,
            "model": name,
            "judge": ["gpt-9", "single-v1"],
            "turn": 1,
            "score": score,
            "judgment": f"[[{score}]]",
        }
        for n in range(ITEMS)
        for name, score in zip(ENTRANTS, (9, 6, 2), strict=True)
    ]
    sent = world.client.post(
        f"evaluations/{EVALUATION}/judgments", files={"file": ("j.jsonl", jsonl(rows))}, data={"name": JUDGE}
    )
    assert sent.is_success, sent.text


def test_a_judges_suggestion_is_shown_hidden_and_compared(desks: Desks, page: Page, world: World) -> None:
    enter_judge(world)
    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    page.get_by_role("button", name="Ask people").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("hinted")
    dialog.get_by_label("Maximum number of prompts").fill("2")
    dialog.get_by_role("button", name="Annotators, gold prompts, suggestions and flags").click()
    dialog.get_by_role("combobox", name="Judge's suggestion").click()
    page.get_by_role("option", name=JUDGE).click()
    dialog.get_by_role("button", name="Open the campaign").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("region", name="Campaign hinted")).to_contain_text(f"suggestions by {JUDGE}")

    campaign = desks.of("hinted")
    desk = desks.sit(campaign.annotator("hugo"))
    mine = desk.page
    line = mine.get_by_role("group", name="Judge's suggestion")
    best, middle, worst = desk.best_first()
    expect(line).to_contain_text(f"{best} > {middle} > {worst}")
    expect(line).to_contain_text(f"{best} 9")
    faults = faults_of(mine, "a suggestion")
    desk.rank_by_keys()
    desk.submit()
    campaign.arrive(1)
    mine.keyboard.press("u")
    expect(mine.get_by_text("0 done, 2 left")).to_be_visible()
    mine.keyboard.press("j")  # hidden too late: it was seen
    expect(line).not_to_contain_text(" > ")
    desk.submit()
    expect(line.get_by_role("switch")).not_to_be_checked()
    mine.reload()
    expect(line).not_to_contain_text(" > ")
    for key in reversed(desk.best_first()):
        mine.keyboard.press(key.lower())
    mine.keyboard.press("Enter")
    expect(mine.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    kept = campaign.arrive(2)
    assert sorted(row["suggestion_visible"] for row in kept) == [False, True]
    heard = "\n".join(desk.said).lower()
    assert [name for name in (*ENTRANTS, JUDGE) if name in heard] == []

    page.goto(f"/p/default/evaluations/{EVALUATION}/campaigns/hinted")
    rows = page.get_by_role("table", name="Agreement with the judge").get_by_role("row")
    expect(rows.filter(has_text="Suggestion visible")).to_contain_text("100%")
    expect(rows.filter(has_text="Suggestion hidden")).to_contain_text("0%")
    faults |= faults_of(page, "agreement with a judge")

    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    region = page.get_by_role("region", name="Campaign hinted")
    region.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings of hinted")
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    dialog.get_by_role("combobox", name="Judge's suggestion").click()
    page.get_by_role("option", name=JUDGE).click()
    dialog.get_by_role("combobox", name="Labels of flagged passages").fill("rude")
    page.keyboard.press("Enter")
    faults |= faults_of(page, "settings of a campaign")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    expect(region).not_to_contain_text("suggestions by")
    changed = world.get(f"evaluations/{EVALUATION}/campaigns/hinted")
    assert (changed["judge"], changed["span_labels"][-1], changed["overlap"]) == (None, "rude", 1)
    assert faults == {}, told(faults)
