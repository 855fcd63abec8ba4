"""Other tasks than ranking, at an annotator's desk: a choice of two, scores by criterion, a correction."""

from __future__ import annotations

from typing import Any

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from ranking_desks import ENTRANTS, EVALUATION, Desk, Desks

TWO = ["zebra-raw", "heron-dt"]


def better(desk: Desk) -> str:
    return "A" if "excellent" in desk.page.get_by_role("region", name="Answer A").inner_text() else "B"


def next_item(desk: Desk, key: str) -> None:
    prompt = desk.prompt()
    desk.page.keyboard.press(key)
    expect(desk.page.get_by_role("region", name="Prompt").get_by_text(prompt)).to_have_count(0)


def test_one_key_chooses_between_two_answers_and_brings_the_next(desks: Desks) -> None:
    campaign = desks.campaign("choices", limit=4, task_type="pairwise", entrants=TWO)
    desk = desks.sit(campaign.annotator("pam"))
    page = desk.page
    first = better(desk)
    next_item(desk, first)
    page.keyboard.press("u")
    expect(page.get_by_text("0 done, 4 left")).to_be_visible()
    expect(page.get_by_role("button", name=f"{first} is better")).to_have_attribute("aria-pressed", "true")
    faults = faults_of(page, "a choice")
    next_item(desk, first.lower())
    next_item(desk, "t")
    next_item(desk, "x")
    page.get_by_role("button", name=f"{better(desk)} is better").click()
    expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    rankings = campaign.arrive(4)
    said = sorted((row["ranks"]["zebra-raw"], row["ranks"]["heron-dt"], row["both_bad"]) for row in rankings)
    assert said == [(1, 1, False), (1, 1, True), (1, 2, False), (1, 2, False)]
    assert faults == {}, told(faults)


def test_digits_score_every_answer_by_every_criterion(desks: Desks) -> None:
    criteria = [
        {"name": "truth", "points": 7, "low": "false", "high": "true", "description": "Is it so?"},
        {"name": "style"},
    ]
    campaign = desks.campaign("scores", limit=2, task_type="likert", criteria=criteria)
    desk = desks.sit(campaign.annotator("lea"))
    page = desk.page
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Still to score: 6")).to_be_visible()
    for digit in "71523":
        page.keyboard.press(digit)
    page.keyboard.press("9")  # off the scale: nothing
    expect(page.get_by_role("button", name="Still to score: C, style")).to_be_visible()
    faults = faults_of(page, "scores")
    page.reload()
    page.get_by_role("radiogroup", name="C, style").get_by_role("radio", name="4").click()
    expect(page.get_by_role("radiogroup", name="A, truth").get_by_role("radio", name="7")).to_be_checked()
    order = [next(name for name, word in ENTRANTS.items() if word in text(page, key)) for key in "ABC"]
    next_item(desk, "Enter")
    (kept,) = campaign.arrive(1)
    assert kept["scores"]["truth"] == dict(zip(order, (7, 5, 3), strict=True))
    assert kept["scores"]["style"] == dict(zip(order, (1, 2, 4), strict=True))
    assert faults == {}, told(faults)


def test_an_answer_is_corrected_and_becomes_a_row_to_fine_tune_on(desks: Desks, page: Page, world: World) -> None:
    campaign = desks.campaign("fixes", limit=2, task_type="correction", entrants=["heron-dt"])
    desk = desks.sit(campaign.annotator("cora"))
    mine = desk.page
    field = mine.get_by_role("textbox", name="The last turn as it should be")
    expect(field).to_have_value("Yes.")
    expect(mine.get_by_role("button", name="Accept as it is")).to_be_visible()
    mine.keyboard.press("e")
    field.fill("Yes, I am sure.")
    mine.get_by_role("button", name="Show changes").click()
    expect(mine.get_by_role("region", name="Changes")).to_contain_text("Yes, I am sure.")
    faults = faults_of(mine, "a correction")
    mine.reload()
    expect(field).to_have_value("Yes, I am sure.")
    field.press("Control+Enter")
    expect(mine.get_by_text("1 done, 1 left")).to_be_visible()
    mine.keyboard.press("Enter")
    expect(mine.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    assert sorted(row["correction"] for row in campaign.arrive(2)) == ["Yes, I am sure.", "Yes."]

    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    card = page.get_by_role("region", name="Campaign fixes")
    card.get_by_role("button", name="Make a dataset").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Include answers that were accepted unchanged").uncheck()
    dialog.get_by_role("button", name="Make the dataset").click()
    expect(dialog).to_contain_text("1 row")
    made = dialog.get_by_role("link").inner_text()
    (row,) = world.get(f"datasets/{made}/samples?limit=10")["items"]
    assert row["sample"]["response"] == "Yes, I am sure."
    assert faults == {}, told(faults)


def test_the_form_asks_about_the_entrants_that_fit_the_task(desks: Desks, page: Page, world: World) -> None:
    # Votes that other tests left on this server decide who is best.
    best = [row["entrant"] for row in world.get(f"evaluations/{EVALUATION}/standing")["items"]]
    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    page.get_by_role("button", name="Ask people").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Pairwise", exact=True).click()
    for entrant in best[:2]:
        expect(dialog.get_by_text(entrant)).to_be_visible()
    for entrant in best[2:]:
        expect(dialog.get_by_text(entrant)).to_have_count(0)
    faults: dict[str, Any] = faults_of(page, "a form of a choice")
    dialog.get_by_text("Likert", exact=True).click()
    dialog.get_by_role("textbox", name="Criterion 1", exact=True).fill("")
    expect(dialog.get_by_role("button", name="Open the campaign")).to_be_disabled()
    dialog.get_by_role("textbox", name="Criterion 1", exact=True).fill("Tone")
    dialog.get_by_label("Points of criterion 1").fill("7")
    dialog.get_by_label("What the lowest score of criterion 1 means").fill("rude")
    dialog.get_by_label("Name", exact=True).fill("tones")
    faults |= faults_of(page, "a form of scores")
    dialog.get_by_role("button", name="Open the campaign").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("region", name="Campaign tones")).to_contain_text("Likert")
    made = world.get(f"evaluations/{EVALUATION}/campaigns/tones")
    assert made["criteria"] == [{"name": "Tone", "description": "", "points": 7, "low": "rude", "high": None}]
    assert faults == {}, told(faults)


def text(page: Page, key: str) -> str:
    return page.get_by_role("region", name=f"Answer {key}").inner_text()
