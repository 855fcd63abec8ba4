"""Annotators at their work in the browser: quick, blind, and each item once."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import CDPSession, Locator, Page, expect
from ranking_desks import ENTRANTS, EVALUATION, Desks, right

SECRETS = (*ENTRANTS, EVALUATION, "zebra", "walrus", "heron", "quokka")


def drag(touch: CDPSession, page: Page, key: str, place: int) -> None:
    """Drags with a finger, in the order of the answers; `place` may be where it is."""

    def middle(at: Locator) -> dict[str, float]:
        box = at.bounding_box()
        assert box is not None
        return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}

    def move(kind: str, *points: dict[str, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    chips = page.get_by_role("group", name="Order, best first").get_by_role("button", name=re.compile("^Answer"))
    mine = chips.filter(has_text=re.compile(rf"^Answer\s+{key}"))
    start, end = middle(mine), middle(chips.nth(place))
    move("touchStart", start)
    move("touchMove", {"x": start["x"] + 8, "y": start["y"]})
    expect(page.locator("[data-dragging]")).to_have_count(1)
    for part in (0.3, 0.6, 1):
        move("touchMove", {axis: start[axis] + part * (end[axis] - start[axis]) for axis in "xy"})
    if start != end:
        # The others make room.
        page.locator(".rank-chip:not([data-dragging])[style*=translate3d]").first.wait_for()
    # A finger that lifts in full motion makes a fling, and the next tap would only end that.
    page.wait_for_timeout(120)
    move("touchMove", end)
    move("touchEnd")
    expect(page.locator("[data-dragging]")).to_have_count(0)
    expect(chips.nth(place)).to_have_text(re.compile(rf"Answer\s+{key}\s+rank"))


def test_ten_items_are_ranked_by_keyboard_alone(desks: Desks) -> None:
    campaign = desks.campaign("keys", limit=10, instructions="The more helpful one first.")
    desk = desks.sit(campaign.annotator("kim"))
    page = desk.page
    expect(page.get_by_text("The more helpful one first.")).to_be_visible()
    # Else a finger scrolls the page instead: the page's own styles come after the components'.
    expect(page.locator(".rank-chip").first).to_have_css("touch-action", "none")
    # Incomplete: Enter submits nothing and shows which one has no rank yet.
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Still to rank: B, C")).to_be_visible()
    expect(page.get_by_role("region", name="Answer B")).to_have_attribute("data-focused", "true")
    for number in range(10):
        desk.rank_by_keys()
        if number == 3:
            page.keyboard.press("m")
            page.keyboard.type("a close one")
            page.keyboard.press("Escape")
        if number < 9:
            desk.submit()
            expect(page.get_by_text(f"{number + 1} done, {9 - number} left")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    rankings = campaign.arrive(10)
    assert right(rankings) == [True] * 10
    assert len({ranking["position"] for ranking in rankings}) == 10
    assert [ranking["comment"] for ranking in rankings if ranking["comment"]] == ["a close one"]


def test_ties_and_long_answers_need_no_mouse_either(desks: Desks) -> None:
    campaign = desks.campaign("ties", limit=2)
    desk = desks.sit(campaign.annotator("tess"))
    page = desk.page
    page.keyboard.press("b")
    page.keyboard.press("End")
    text = page.get_by_role("group", name="Text of answer B")
    expect(text).to_be_focused()
    page.wait_for_function("box => box.scrollTop + box.clientHeight > box.scrollHeight - 2", arg=text.element_handle())
    page.keyboard.press("0")
    best, middle, worst = desk.best_first()
    for letter in (best, worst, middle):  # a letter alone takes the next rank
        page.keyboard.press(letter)
    expect(page.get_by_role("button", name=f"Answer {middle} rank 3")).to_be_visible()
    page.keyboard.press("=")
    expect(page.get_by_role("button", name=re.compile("tie: separate them"))).to_have_count(1)
    desk.submit()
    page.keyboard.press("s")
    page.get_by_role("textbox", name="Why?").press_sequentially("I cannot add")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    assert [ranking["ranks"] for ranking in campaign.arrive(1)] == [{"zebra-raw": 1, "walrus-sft": 2, "heron-dt": 2}]
    flags = campaign.world.get(f"{campaign.path}/flags")["items"]
    assert [flag["annotator"] for flag in flags] == ["tess"]


@pytest.mark.long
def test_ten_items_are_ranked_by_drag_on_a_phone(desks: Desks) -> None:
    campaign = desks.campaign("touch", limit=10)
    desk = desks.sit(campaign.annotator("finn"), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = desk.page
    touch = desk.context.new_cdp_session(page)
    submit = page.get_by_role("button", name="Submit")
    for number in range(10):
        best, middle, _worst = desk.best_first()
        drag(touch, page, best, 0)
        expect(page.get_by_role("button", name=re.compile("^Still to rank"))).to_be_in_viewport(ratio=1)
        drag(touch, page, middle, 1)
        expect(submit).to_be_in_viewport(ratio=1)
        prompt = desk.prompt()
        submit.tap()
        if number < 9:
            expect(page.get_by_role("region", name="Prompt").get_by_text(prompt)).to_have_count(0)
    expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    assert right(campaign.arrive(10)) == [True] * 10


def test_two_annotators_share_the_items_and_learn_no_name(desks: Desks) -> None:
    campaign = desks.campaign("shared", limit=9)
    people = [desks.sit(link) for link in (campaign.annotator("ann"), campaign.annotator("bob"))]
    seen: Counter[str] = Counter()
    for _ in range(3):
        prompts = {desk.prompt() for desk in people}
        assert len(prompts) == 2
        for desk in people:
            desk.rank_by_keys()
            seen[desk.submit()] += 1
    rankings = campaign.arrive(6)
    assert set(seen.values()) == {1}
    assert {ranking["annotator"] for ranking in rankings} == {"ann", "bob"}
    assert set(Counter(ranking["position"] for ranking in rankings).values()) == {1}
    for desk in people:
        desk.page.get_by_role("link", name="All campaigns").click()
        expect(desk.page.get_by_role("region", name="shared")).to_contain_text("3 done")
        got = desk.page.content() + "".join(desk.said)
        assert "excellent" in got
        assert [secret for secret in SECRETS if secret in got] == []


@pytest.mark.long
def test_the_owner_pauses_and_closes_while_people_rank(desks: Desks, world: World) -> None:
    campaign = desks.campaign("pausing", limit=5)
    desk = desks.sit(campaign.annotator("pia"))
    world.client.patch(campaign.path, json={"state": "paused"}).raise_for_status()
    # What was at hand is finished.
    for number in range(3):
        desk.rank_by_keys()
        if number < 2:
            desk.submit()
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_role("heading", name="Paused")).to_be_visible()
    world.client.patch(campaign.path, json={"state": "open"}).raise_for_status()
    desk.page.get_by_role("region", name="Answer A").wait_for()
    world.client.patch(campaign.path, json={"state": "closed"}).raise_for_status()
    desk.rank_by_keys()
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_text("One item could not be counted")).to_be_visible()
    assert right(campaign.rankings()) == [True] * 3


def test_annotators_see_nothing_else_and_viewers_rank_nothing(desks: Desks, world: World) -> None:
    campaign = desks.campaign("doors", limit=3)
    desk = desks.sit(campaign.annotator("dora"))
    for path in ("/", "/p/default", "/p/default/runs", f"/p/default/evaluations/{EVALUATION}", "/p/default/models"):
        desk.page.goto(path)
        expect(desk.page).to_have_url(re.compile("/p/default/rank$"))
        expect(desk.page.get_by_role("heading", level=1, name="Annotate")).to_be_visible()
    expect(desk.page.get_by_role("link", name="Runs")).to_have_count(0)
    assert [said for said in desk.said if any(secret in said for secret in SECRETS)] == []
    viewer = desks.sit(world.invite("vera-views", "viewer"), wait=False)
    viewer.page.goto(f"/p/default/rank/{campaign.id}")
    expect(viewer.page.get_by_role("alert").first).to_be_visible()
    expect(viewer.page.get_by_role("region", name="Answer A")).to_have_count(0)
    assert "excellent" not in viewer.page.content()


def test_the_pages_pass_axe_and_fit_a_phone(desks: Desks) -> None:
    criteria = [{"name": "helpfulness", "description": "Does it do what was asked?"}, {"name": "style"}]
    campaign = desks.campaign("looks", limit=2, instructions="Best first.", criteria=criteria)
    desk = desks.sit(campaign.annotator("axel"))
    page = desk.page
    faults: dict[str, Any] = {}

    def look(what: str) -> None:
        faults.update(faults_of(page, what))

    look("an item")
    desk.rank_by_keys()
    page.keyboard.press("m")
    look("a ranked item with a note")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 844})
    look("a phone")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    look("help")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    for _ in range(2):
        page.keyboard.press("s")
        page.get_by_role("textbox", name="Why?").press_sequentially("no")
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for(state="hidden")
    page.get_by_role("heading", name="All done. Thank you!").wait_for()
    look("done")
    page.goto("/p/default/rank")
    page.get_by_role("region", name="looks").wait_for()
    look("the list")
    assert faults == {}, told(faults)
