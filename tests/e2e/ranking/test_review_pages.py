"""A reviewer decides, in the browser, where annotators disagree."""

from __future__ import annotations

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import expect
from ranking_desks import Desk, Desks

TWO = ["zebra-raw", "heron-dt"]


def choose(desk: Desk, *, right: bool) -> None:
    first = "excellent" in desk.page.get_by_role("region", name="Answer A").inner_text()
    desk.page.keyboard.press("a" if first == right else "b")


def test_a_reviewer_takes_an_opinion_or_decides_and_can_change_it(desks: Desks, world: World) -> None:
    campaign = desks.campaign("contested", limit=2, task_type="pairwise", entrants=TWO, overlap=2)
    for link, right in ((campaign.annotator("una"), True), (campaign.annotator("vic"), False)):
        desk = desks.sit(link)
        choose(desk, right=right)
        expect(desk.page.get_by_text("1 done, 1 left")).to_be_visible()
        choose(desk, right=right)
        expect(desk.page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    reviewer = desks.sit(world.invite("rita", "reviewer"), wait=False)
    page = reviewer.page
    card = page.get_by_role("region", name="contested")
    card.get_by_role("link", name="Review").click()
    expect(page.get_by_text("To decide (2)")).to_be_visible()
    opinions = page.get_by_role("table", name="Opinions")
    expect(opinions.get_by_role("row")).to_have_count(3)
    faults = faults_of(page, "a review")
    opinions.get_by_role("button", name="Take una's").click()
    expect(page.get_by_text("To decide (1)")).to_be_visible()
    page.keyboard.press("x")
    expect(page.get_by_text("Nothing to decide")).to_be_visible()
    page.get_by_text("Decided (2)").click()
    newest = page.get_by_role("article", name="Decided item").first
    expect(newest).to_contain_text("Both are bad")
    faults |= faults_of(page, "decisions")
    newest.get_by_role("button", name="Change").click()
    page.keyboard.press("t")
    expect(page.get_by_role("article", name="Decided item").first).to_contain_text("A = B")
    page.get_by_role("article", name="Decided item").first.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Decided (1)")).to_be_visible()
    figures = world.get(campaign.path)
    assert (figures["disagreements"], figures["adjudicated"], figures["rankings"]) == (1, 1, 4)
    assert [said for said in reviewer.said if any(name in said for name in TWO)] == []
    assert faults == {}, told(faults)
