"""Annotators at their work in the browser: nothing is lost, nothing is doubled, and no name is told."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import World
from playwright.sync_api import Browser, BrowserContext, CDPSession, Error, Locator, Page, Request, Route, expect

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
# Best first; what they answer says how good it is.
ENTRANTS = {"zebra-raw": "excellent", "walrus-sft": "passable", "heron-dt": "useless"}
EVALUATION = "quokka-eval"
SECRETS = (*ENTRANTS, EVALUATION, "zebra", "walrus", "heron", "quokka")
ITEMS = 12


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="session")
def evaluation(world: World) -> str:
    questions = [
        {"question_id": 81 + n, "category": "math", "turns": [f"What is {n} plus {n}?", "Are you sure?"]}
        for n in range(ITEMS)
    ]
    sent = world.client.post("prompt-sets", files={"file": ("q.jsonl", jsonl(questions))}, data={"name": "sums"})
    sent.raise_for_status()
    body = {"name": EVALUATION, "prompts": {"set": "sums"}, "entrants": [], "check_against": []}
    world.client.post("evaluations", json=body).raise_for_status()
    for name, worth in ENTRANTS.items():
        answers = [
            {
                "question_id": 81 + n,
                "model_id": name,
                "choices": [{"index": 0, "turns": [f"An {worth} answer to {n}. " + "More of it. " * 400, "Yes."]}],
            }
            for n in range(ITEMS)
        ]
        files = {"file": ("a.jsonl", jsonl(answers))}
        world.client.post(f"evaluations/{EVALUATION}/answers", files=files).raise_for_status()
    return EVALUATION


@dataclass
class Campaign:
    """As its owner sees it."""

    world: World
    name: str
    id: str

    @property
    def path(self) -> str:
        return f"evaluations/{EVALUATION}/campaigns/{self.id}"

    def annotator(self, name: str) -> str:
        """A link that signs a new annotator in and shows the first item."""
        answer = self.world.client.post(f"{self.path}/annotators", json={"name": name})
        answer.raise_for_status()
        return self.world.url + str(answer.json()["link"])

    def rankings(self) -> list[dict[str, Any]]:
        return list(self.world.get(f"{self.path}/rankings?limit=1000")["items"])

    def arrive(self, number: int) -> list[dict[str, Any]]:
        self.world.wait(lambda: len(self.rankings()) >= number, f"{number} rankings", 20)
        return self.rankings()


@dataclass
class Desk:
    """An annotator's browser. `said`: all that it got from the server."""

    context: BrowserContext
    page: Page
    said: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def best_first(self) -> list[str]:
        """The keys of the answers on the screen."""
        texts = {key: self.page.get_by_role("region", name=f"Answer {key}").inner_text() for key in "ABC"}
        return sorted(texts, key=lambda key: next(i for i, w in enumerate(ENTRANTS.values()) if w in texts[key]))

    def rank_by_keys(self) -> None:
        for rank, key in enumerate(self.best_first(), start=1):
            self.page.keyboard.press(key.lower())
            self.page.keyboard.press(str(rank))

    def submit(self) -> str:
        """Enter; the prompt that was ranked."""
        prompt = self.prompt()
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("region", name="Prompt").get_by_text(prompt)).to_have_count(0)
        return prompt

    def banner(self) -> Locator:
        return self.page.get_by_role("status").filter(has_text="No connection")

    def prompt(self) -> str:
        return self.page.get_by_role("region", name="Prompt").inner_text()


class Desks:
    def __init__(self, world: World, browser: Browser) -> None:
        self.world, self.browser = world, browser
        self.open: list[Desk] = []

    def campaign(self, name: str, **given: Any) -> Campaign:
        answer = self.world.client.post(f"evaluations/{EVALUATION}/campaigns", json={"name": name, **given})
        answer.raise_for_status()
        return Campaign(self.world, name, answer.json()["id"])

    def sit(self, link: str, *, wait: bool = True, **options: Any) -> Desk:
        context = self.browser.new_context(base_url=self.world.url, bypass_csp=True, **options)
        context.set_default_timeout(20_000)
        desk = Desk(context, context.new_page())
        self.open.append(desk)

        def hear(request: Request) -> None:
            # A page that is left at this moment has read no body either.
            with suppress(Error):
                answer = request.response()
                if answer is not None and "/api/" in answer.url:
                    desk.said.append(f"{answer.status} {answer.headers} {answer.text()}")

        desk.page.on("requestfinished", hear)
        desk.page.on("pageerror", lambda error: desk.errors.append(str(error)))
        desk.page.goto(link)
        if wait:
            desk.page.get_by_role("region", name="Answer A").wait_for()
        return desk


@pytest.fixture
def desks(world: World, browser: Browser, evaluation: str) -> Iterator[Desks]:
    made = Desks(world, browser)
    yield made
    errors = [error for desk in made.open for error in desk.errors]
    for desk in made.open:
        desk.context.close()
    assert errors == []


def right(rankings: list[dict[str, Any]]) -> list[bool]:
    return [ranking["ranks"] == dict(zip(ENTRANTS, (1, 2, 3), strict=True)) for ranking in rankings]


def drag(touch: CDPSession, page: Page, key: str, place: int) -> None:
    """With a finger, in the order of the answers; `place` may be where it is."""

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
    best, middle, worst = desk.best_first()
    page.keyboard.press(best)
    page.keyboard.press("1")
    page.keyboard.press(worst)
    page.keyboard.press("2")
    page.keyboard.press(middle)
    page.keyboard.press("=")
    expect(page.get_by_role("button", name=re.compile("tie: part them"))).to_have_count(1)
    desk.submit()
    page.keyboard.press("s")
    page.get_by_role("textbox", name="Why?").press_sequentially("I cannot add")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All done. Thank you!")).to_be_visible()
    assert [ranking["ranks"] for ranking in campaign.arrive(1)] == [{"zebra-raw": 1, "walrus-sft": 2, "heron-dt": 2}]
    flags = campaign.world.get(f"{campaign.path}/flags")["items"]
    assert [flag["annotator"] for flag in flags] == ["tess"]


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


def test_a_lost_network_loses_and_doubles_nothing(desks: Desks) -> None:
    campaign = desks.campaign("offline", limit=4)
    desk = desks.sit(campaign.annotator("olga"))
    page = desk.page
    desk.rank_by_keys()
    desk.submit()
    campaign.arrive(1)
    desk.context.set_offline(True)
    banner = desk.banner()
    for waiting in ("1 ranking waits", "2 rankings wait"):
        desk.rank_by_keys()
        desk.submit()
        expect(banner).to_contain_text(waiting)
    assert len(campaign.rankings()) == 1
    # The last one taken back before it has left.
    page.keyboard.press("u")
    expect(banner).to_contain_text("1 ranking waits")
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    desk.submit()
    desk.context.set_offline(False)
    expect(banner).to_be_hidden()
    rankings = campaign.arrive(3)
    assert right(rankings) == [True] * 3
    assert len({ranking["position"] for ranking in rankings}) == 3
    expect(page.get_by_text("3 done, 1 left")).to_be_visible()


def test_rankings_that_wait_survive_a_closed_tab(desks: Desks) -> None:
    campaign = desks.campaign("closed-tab", limit=3)
    desk = desks.sit(campaign.annotator("cleo"))
    address = desk.page.url
    # The server is away: what is sent to it arrives nowhere.
    desk.context.route("**/submit", lambda route: route.abort())
    desk.rank_by_keys()
    desk.submit()
    expect(desk.banner()).to_contain_text("1 ranking waits")
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
    # What had arrived is taken back as if it had not, and ranked anew.
    expect(desk.banner()).to_contain_text("1 ranking waits")
    page.keyboard.press("u")
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    desk.submit()
    expect(page.get_by_text("1 done, 2 left")).to_be_visible()
    expect(page.get_by_text("could not be counted")).to_have_count(0)
    assert right(campaign.rankings()) == [True]


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


def test_two_annotators_share_the_items_and_learn_no_name(desks: Desks) -> None:
    campaign = desks.campaign("shared", limit=9)
    people = [desks.sit(campaign.annotator(name)) for name in ("ann", "bob")]
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
        desk.page.get_by_role("link", name="All that there is to rank").click()
        expect(desk.page.get_by_role("region", name="shared")).to_contain_text("3 done")
        got = desk.page.content() + "".join(desk.said)
        assert "excellent" in got
        assert [secret for secret in SECRETS if secret in got] == []


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
    expect(desk.page.get_by_text("One ranking could not be counted")).to_be_visible()
    assert right(campaign.rankings()) == [True] * 3


def test_annotators_see_nothing_else_and_viewers_rank_nothing(desks: Desks, world: World) -> None:
    campaign = desks.campaign("doors", limit=3)
    desk = desks.sit(campaign.annotator("dora"))
    for path in ("/", "/p/default", "/p/default/runs", f"/p/default/evaluations/{EVALUATION}", "/p/default/models"):
        desk.page.goto(path)
        expect(desk.page).to_have_url(re.compile("/p/default/rank$"))
        expect(desk.page.get_by_role("heading", level=1, name="Rank")).to_be_visible()
    expect(desk.page.get_by_role("link", name="Runs")).to_have_count(0)
    assert [said for said in desk.said if any(secret in said for secret in SECRETS)] == []
    viewer = desks.sit(world.invite("vera-views", "viewer"), wait=False)
    viewer.page.goto(f"/p/default/rank/{campaign.id}")
    expect(viewer.page.get_by_role("alert").first).to_be_visible()
    expect(viewer.page.get_by_role("region", name="Answer A")).to_have_count(0)
    assert "excellent" not in viewer.page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_pass_axe_and_fit_a_phone(desks: Desks, scheme: str) -> None:
    criteria = [{"name": "helpfulness", "description": "Does it do what was asked?"}, {"name": "style"}]
    campaign = desks.campaign(f"looks-{scheme}", limit=2, instructions="Best first.", criteria=criteria)
    desk = desks.sit(campaign.annotator(f"axel-{scheme}"), color_scheme=scheme)
    page = desk.page
    found: dict[str, Any] = {}

    def look(what: str) -> None:
        page.wait_for_function("!document.querySelector('[aria-busy=true]')")
        page.evaluate(AXE.read_text())
        # Colours in the middle of a transition are nobody's.
        page.wait_for_function("document.getAnimations().every(one => one.playState !== 'running')")
        for one in page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)"):
            if one["impact"] in ("serious", "critical"):
                found[f"{what} {one['id']}"] = (one["help"], [node["target"] for node in one["nodes"][:3]])
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found[f"{what} width"] = wide

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
    page.get_by_role("region", name=f"looks-{scheme}").wait_for()
    look("the list")
    assert found == {}, "\n".join(f"{k}: {v}" for k, v in found.items())
