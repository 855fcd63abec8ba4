"""A campaign's own questions: set in its form, answered by keys, reviewed, counted and downloaded."""

from __future__ import annotations

import json

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from ranking_desks import EVALUATION, Desk, Desks

QUESTIONS = [
    {"label": "Prompt's language", "kind": "one_choice", "choices": ["English", "French"], "help": "Of the prompt"},
    {"label": "Topics", "kind": "several_choices", "choices": ["sums", "law", "art"], "required": False},
    {"label": "Reason", "kind": "text", "help": "In your words"},
]


def test_the_form_asks_questions_and_keys_answer_them(desks: Desks, page: Page) -> None:
    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    page.get_by_role("button", name="Ask people").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("asked-more")
    for place, asked in enumerate(QUESTIONS, start=1):
        dialog.get_by_role("button", name="Add a question").click()
        question = dialog.get_by_role("group", name=f"Question {place}", exact=True)
        question.get_by_role("textbox", name="Label").fill(str(asked["label"]))
        question.get_by_role("textbox", name="Help").fill(str(asked.get("help", "")))
        if asked["kind"] != "one_choice":
            question.get_by_role("combobox", name="Kind").click()
            kind = {"several_choices": "Several choices", "text": "Text"}[str(asked["kind"])]
            page.get_by_role("option", name=kind, exact=True).click()
        for choice in asked.get("choices", ()):
            question.get_by_role("combobox", name="Choices").fill(str(choice))
            page.keyboard.press("Enter")
        if asked.get("required") is False:
            question.get_by_label("Required").uncheck()
    faults = faults_of(page, "form of questions")
    dialog.get_by_label("Maximum number of prompts").fill("2")
    dialog.get_by_role("button", name="Open the campaign").click()
    expect(page.get_by_role("region", name="Campaign asked-more")).to_contain_text("3 questions")

    campaign = desks.of("asked-more")
    desk = desks.sit(campaign.annotator("quinn"))
    mine = desk.page
    desk.rank_by_keys()
    expect(mine.get_by_role("button", name="Still to answer: Prompt's language")).to_be_visible()
    mine.keyboard.press("Enter")  # marks what is open
    mine.keyboard.press("1")
    field = mine.get_by_role("textbox", name="Reason")
    expect(field).to_be_focused()
    mine.keyboard.type("It adds 1 and 1.")
    mine.keyboard.press("Escape")
    mine.keyboard.press("q")
    mine.keyboard.press("ArrowDown")
    mine.keyboard.press("3")
    mine.keyboard.press("1")
    faults |= faults_of(mine, "questions")
    mine.reload()
    expect(mine.get_by_role("radio", name="English")).to_be_checked()
    expect(mine.get_by_role("checkbox", name="sums")).to_be_checked()
    expect(field).to_have_value("It adds 1 and 1.")
    desk.submit()
    (kept,) = campaign.arrive(1)
    replies = {"Prompt's language": "English", "Topics": ["sums", "art"], "Reason": "It adds 1 and 1."}
    assert kept["replies"] == replies
    assert sorted(kept["ranks"].values()) == [1, 2, 3]
    assert faults == {}, told(faults)


def test_of_two_answers_the_choice_waits_for_the_replies(desks: Desks) -> None:
    pair = ["zebra-raw", "heron-dt"]
    campaign = desks.campaign("choice-and-more", limit=1, task_type="pairwise", entrants=pair, questions=QUESTIONS[:1])
    desk = desks.sit(campaign.annotator("quentin"))
    page = desk.page
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="A is better")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("q")
    page.keyboard.press("2")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    (kept,) = campaign.arrive(1)
    assert kept["replies"] == {"Prompt's language": "French"}


def test_a_reviewer_decides_on_choices_that_differ_and_they_are_counted(desks: Desks, page: Page, world: World) -> None:
    campaign = desks.campaign("differ", limit=1, overlap=2, questions=QUESTIONS[:2])
    for link, digit in ((campaign.annotator("uma"), "1"), (campaign.annotator("uwe"), "2")):
        desk: Desk = desks.sit(link)
        desk.rank_by_keys()
        desk.page.keyboard.press("q")
        desk.page.keyboard.press(digit)
        desk.page.keyboard.press("Enter")
        expect(desk.page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    campaign.arrive(2)
    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    card = page.get_by_role("region", name="Campaign differ")
    with page.expect_download() as download:
        card.get_by_role("link", name="Download").click()
    rows = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    assert [row["replies"]["Prompt's language"] for row in rows] == ["English", "French"]
    card.get_by_role("link", name="Disagreements (1)").click()
    expect(page.get_by_role("table", name="Opinions")).to_contain_text("Prompt's language French")
    faults = faults_of(page, "review of replies")
    page.get_by_role("button", name="Take uwe's").click()
    expect(page.get_by_role("heading", name="Nothing to decide")).to_be_visible()

    page.goto(f"/p/default/evaluations/{EVALUATION}/campaigns/differ")
    counts = page.get_by_role("table", name="Replies to Prompt's language")
    expect(counts.get_by_role("row", name="French")).to_contain_text("1")
    expect(counts.get_by_role("row", name="English")).to_contain_text("0")
    expect(page.get_by_role("region", name="Prompt's language")).to_contain_text("agreement 0%")
    faults |= faults_of(page, "counts of replies")
    assert faults == {}, told(faults)
