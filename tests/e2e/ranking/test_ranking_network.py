"""Networks that break while people rank: nothing is lost, nothing is doubled."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from playwright.sync_api import Route, expect
from ranking_desks import Desks, right
from silent_proxy import SilentProxy


def test_a_lost_network_loses_and_doubles_nothing(desks: Desks) -> None:
    campaign = desks.campaign("offline", limit=4)
    desk = desks.sit(campaign.annotator("olga"))
    page = desk.page
    desk.rank_by_keys()
    desk.submit()
    campaign.arrive(1)
    desk.context.set_offline(True)
    banner = desk.banner()
    for waiting in ("1 item is waiting", "2 items are waiting"):
        desk.rank_by_keys()
        desk.submit()
        expect(banner).to_contain_text(waiting)
    assert len(campaign.rankings()) == 1
    # The last one taken back before it has left.
    page.keyboard.press("u")
    expect(banner).to_contain_text("1 item is waiting")
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    desk.submit()
    desk.context.set_offline(False)
    expect(banner).to_be_hidden()
    rankings = campaign.arrive(3)
    assert right(rankings) == [True] * 3
    assert len({ranking["position"] for ranking in rankings}) == 3
    expect(page.get_by_text("3 done, 1 left")).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_network_that_goes_silent_loses_and_doubles_nothing(desks: Desks, world: World, forgotten: bool) -> None:
    proxy = SilentProxy(world.url)
    try:
        campaign = desks.campaign(f"silent-{forgotten}", limit=4)
        desk = desks.sit(campaign.annotator(f"silent-{int(forgotten)}").replace(world.url, proxy.url))
        page = desk.page
        desk.rank_by_keys()
        desk.submit()
        campaign.arrive(1)
        expect(page.get_by_text("1 done, 3 left")).to_be_visible()
        proxy.silence(forgotten=forgotten)
        # More drafts than a browser opens connections to one server: those that hang must not hold up what follows.
        for number in range(7):
            with page.expect_request(re.compile("/draft$")):
                page.keyboard.press("a")
                page.keyboard.press(str(1 + number % 3))
        for _ in range(2):
            desk.rank_by_keys()
            desk.submit()
        # No error comes, so it takes a while before the page can know; what was ranked is kept meanwhile.
        expect(desk.banner()).to_contain_text("2 rankings are waiting")
        assert len(campaign.rankings()) == 1
        proxy.speak()
        expect(desk.banner()).to_be_hidden()
        rankings = campaign.arrive(3)
        assert right(rankings) == [True] * 3
        assert len({ranking["position"] for ranking in rankings}) == 3
        expect(page.get_by_text("3 done, 1 left")).to_be_visible()
        expect(page.get_by_text("could not be counted")).to_have_count(0)
        desk.rank_by_keys()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
        assert right(campaign.arrive(4)) == [True] * 4
    finally:
        proxy.close()


@pytest.mark.long
def test_rankings_that_wait_survive_a_closed_tab(desks: Desks) -> None:
    campaign = desks.campaign("closed-tab", limit=3)
    desk = desks.sit(campaign.annotator("cleo"))
    address = desk.page.url
    # The server is away: what is sent to it arrives nowhere.
    desk.context.route("**/submit", lambda route: route.abort())
    desk.rank_by_keys()
    desk.submit()
    expect(desk.banner()).to_contain_text("1 item is waiting")
    desk.page.close()
    desk.context.unroute("**/submit")
    again = desk.context.new_page()
    again.goto(address)
    expect(again.get_by_text("1 done, 2 left")).to_be_visible()
    assert right(campaign.arrive(1)) == [True]


def test_an_answer_that_is_lost_on_its_way_back_doubles_nothing(desks: Desks) -> None:
    campaign = desks.campaign("lost-answer", limit=3)
    desk = desks.sit(campaign.annotator("lars"))
    page = desk.page

    def swallow(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/submit", swallow, times=1)
    desk.rank_by_keys()
    desk.submit()
    # A submission that had arrived is undone like one that had not, and ranked again.
    expect(desk.banner()).to_contain_text("1 item is waiting")
    page.keyboard.press("u")
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    desk.submit()
    expect(page.get_by_text("1 done, 2 left")).to_be_visible()
    expect(page.get_by_text("could not be counted")).to_have_count(0)
    assert right(campaign.rankings()) == [True]


@pytest.mark.long
def test_a_reload_keeps_what_was_ranked_and_the_last_one_can_be_undone(desks: Desks) -> None:
    campaign = desks.campaign("reload", limit=3)
    desk = desks.sit(campaign.annotator("rhea"))
    page = desk.page
    best, middle, worst = desk.best_first()
    page.get_by_role("button", name=f"Give {best} the next rank").click()
    page.get_by_role("button", name=f"Give {middle} the next rank").click()
    prompt = desk.prompt()
    page.reload()
    page.get_by_role("region", name="Answer A").wait_for()
    assert desk.prompt() == prompt
    for rank, key in enumerate((best, middle), start=1):
        expect(page.get_by_role("button", name=f"Answer {key} rank {rank}")).to_be_visible()
    expect(page.get_by_role("button", name=f"Still to rank: {worst}")).to_be_visible()
    page.keyboard.press(worst)
    page.keyboard.press("3")
    desk.submit()
    assert right(campaign.arrive(1)) == [True]
    # From the server, since the page knows of nothing after a reload.
    page.reload()
    page.get_by_role("region", name="Answer A").wait_for()
    expect(page.get_by_text("1 done, 2 left")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("0 done, 3 left")).to_be_visible()
    assert desk.prompt() == prompt
    expect(page.get_by_role("button", name=f"Answer {worst} rank 3")).to_be_visible()
    assert campaign.rankings() == []
    page.keyboard.press(worst)
    page.keyboard.press("2")
    desk.submit()
    assert [ranking["ranks"] for ranking in campaign.arrive(1)] == [{"zebra-raw": 1, "walrus-sft": 2, "heron-dt": 2}]
