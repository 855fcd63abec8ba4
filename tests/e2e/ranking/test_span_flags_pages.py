"""Flags on passages of answers, by pointer and by keys, and where they are seen afterwards."""

from __future__ import annotations

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from ranking_desks import EVALUATION, Desks

SELECT = """([answer, word]) => {
  const text = document.querySelector(`[data-key="${answer}"] [data-turn] pre`);
  const node = document.createTreeWalker(text, NodeFilter.SHOW_TEXT).nextNode();
  const range = document.createRange();
  const start = node.data.indexOf(word);
  range.setStart(node, start);
  range.setEnd(node, start + word.length);
  document.getSelection().removeAllRanges();
  document.getSelection().addRange(range);
}"""


def test_passages_are_flagged_by_pointer_and_keys_and_seen_by_the_owner(desks: Desks, page: Page, world: World) -> None:
    campaign = desks.campaign("passages", limit=2, span_labels=["untrue", "unsafe"])
    desk = desks.sit(campaign.annotator("fay"))
    mine = desk.page
    best = desk.best_first()[0]
    flags = mine.get_by_role("list", name=f"Flags of answer {best}")
    mine.evaluate(SELECT, [best, "excellent answer"])
    mine.get_by_role("button", name="Flag a passage (P)").click()
    panel = mine.get_by_role("group", name="Flag a passage")
    expect(panel).to_contain_text("excellent answer")
    faults = faults_of(mine, "a passage")
    panel.get_by_role("textbox", name="Note on the passage").fill("is it?")
    panel.get_by_role("button", name="untrue").click()
    expect(flags).to_contain_text("is it?")
    expect(panel).to_be_hidden()
    faults |= faults_of(mine, "flagged answers")

    mine.keyboard.press(best.lower())  # marks the answer
    mine.keyboard.press("p")
    mine.keyboard.press("ArrowRight")
    mine.keyboard.press("ArrowRight")
    mine.keyboard.press("Shift+ArrowRight")
    expect(panel).to_contain_text("answer to")
    mine.keyboard.press("Enter")  # ranks and submits nothing meanwhile
    mine.keyboard.press("2")
    expect(flags.get_by_role("listitem")).to_have_count(2)
    mine.keyboard.press("p")
    mine.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    mine.reload()
    expect(flags.get_by_role("listitem")).to_have_count(2)
    expect(mine.locator(f'[data-key="{best}"] mark.flagged')).to_have_text(["excellent ", "answer", " to"])
    desk.rank_by_keys()
    desk.submit()
    (first,) = campaign.arrive(1)
    assert {(span["label"], span["text"], span["note"]) for span in first["spans"]} == {
        ("untrue", "excellent answer", "is it?"),
        ("unsafe", "answer to", None),
    }
    mine.keyboard.press("u")
    expect(flags.get_by_role("listitem")).to_have_count(2)
    flags.get_by_role("button", name="Remove the flag unsafe").click()
    expect(flags.get_by_role("listitem")).to_have_count(1)
    desk.submit()
    (kept,) = campaign.arrive(1)
    assert [span["label"] for span in kept["spans"]] == ["untrue"]

    page.goto(f"/p/default/evaluations/{EVALUATION}/campaigns/passages")
    counts = page.get_by_role("table", name="Flagged passages by label")
    expect(counts.get_by_role("row").filter(has_text="untrue")).to_contain_text("1")
    listed = page.get_by_role("table", name="Flagged passages, the newest first")
    expect(listed).to_contain_text("excellent answer")
    faults |= faults_of(page, "quality with flags")
    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=items&item={kept['position']}")
    answer = page.get_by_role("region", name="Answer of zebra-raw")
    expect(answer.locator("mark.flagged")).to_have_text("excellent answer")
    expect(page.get_by_role("list", name="Flagged passages")).to_contain_text("is it?")
    faults |= faults_of(page, "an item with flags")

    page.goto(f"/p/default/evaluations/{EVALUATION}/campaigns/passages")
    listed.get_by_role("button", name="Remove the flag untrue").click()
    expect(listed).to_have_count(0)
    assert campaign.rankings()[0]["spans"] == []
    assert faults == {}, told(faults)
