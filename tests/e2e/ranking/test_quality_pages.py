"""Qualification by gold items and the page of quality, in the browser."""

from __future__ import annotations

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from ranking_desks import ENTRANTS, EVALUATION, Desk, Desks


def rank_wrong(desk: Desk) -> None:
    for key in reversed(desk.best_first()):
        desk.page.keyboard.press(key.lower())


def test_one_passes_and_one_fails_and_the_owner_sees_how_they_work(desks: Desks, page: Page, world: World) -> None:
    campaign = desks.campaign("careful", limit=2, qualify_items=1, overlap=2)
    ranks = dict(zip(ENTRANTS, (1, 2, 3), strict=True))
    for position in range(12):
        # Whichever prompts were drawn: the first of them is gold.
        if world.client.put(f"{campaign.path}/gold/{position}", json={"ranks": ranks}).is_success:
            break
    good = desks.sit(campaign.annotator("gwen"))
    good.rank_by_keys()
    good.submit()
    good.rank_by_keys()
    good.page.keyboard.press("Enter")
    expect(good.page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    bad = desks.sit(campaign.annotator("bert"))
    rank_wrong(bad)
    bad.page.keyboard.press("Enter")
    expect(bad.page.get_by_role("heading", name="Thank you", exact=True)).to_be_visible()
    expect(bad.page.get_by_role("button", name="Undo the last one")).to_have_count(0)

    page.goto(f"/p/default/evaluations/{EVALUATION}?tab=people")
    page.get_by_role("region", name="Campaign careful").get_by_role("link", name="Quality").click()
    annotators = page.get_by_role("table", name="Annotators")
    expect(annotators.get_by_role("row").filter(has_text="gwen")).to_contain_text("passed")
    expect(annotators.get_by_role("row").filter(has_text="bert")).to_contain_text("failed")
    expect(page.get_by_role("table", name="Days").get_by_role("row").last).to_contain_text("3")
    faults = faults_of(page, "quality")
    assert faults == {}, told(faults)
