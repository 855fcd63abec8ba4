"""The arena in a real browser, before a server that is killed and a network that is cut. The tests write the answers,
as a worker would."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from arena_stage import Stage, arena_at, stage
from dashboard_world import World
from page_checks import faults_of
from playwright.sync_api import Browser, Page, Route, expect
from ranking_desks import Desks, enter_evaluation, right
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.settings import Settings
from support.patience import PATIENCE, wait_until
from support.rows.arena_world import NAMES, write_answers

__all__ = ["stage"]


@dataclass
class Server:
    """`steerboard api` as a process that can be killed, and started again at the same address."""

    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "steerboard.cli.main", "api", "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.is_live, "the server did not start", pause=0.1, process=self.process)

    def is_live(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v1/system/live", timeout=5).status_code == 204
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def server(dashboard: None, settings: Settings, sessions: sessionmaker[Session], project: Project) -> Iterator[Server]:
    """One that a test kills."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        made = Server(free.getsockname()[1])
    made.start()
    yield made
    made.kill()


@pytest.fixture
def stage_of_server(
    server: Server, sessions: sessionmaker[Session], project: Project, browser: Browser
) -> Iterator[Stage]:
    with arena_at(server.url, sessions, project, browser) as made:
        yield made


def waiting(page: Page) -> Any:
    return page.get_by_role("status").filter(has_text="1 vote waiting")


@pytest.mark.long
def test_a_vote_survives_a_killed_server_a_closed_page_and_a_lost_answer_and_counts_once(
    server: Server, stage_of_server: Stage
) -> None:
    stage = stage_of_server
    page = stage.sit("anna", "annotator")
    battle = stage.ask(page, "tea?")
    address = page.url
    server.kill()
    page.keyboard.press("a")
    expect(waiting(page)).to_be_visible()
    expect(page.get_by_text("It is being sent")).to_be_visible()
    context = page.context
    page.close()
    server.start()
    assert stage.votes() == []

    again = context.new_page()
    tries = 0

    def swallow(route: Route) -> None:
        """The server has the vote, and the browser does not hear of it."""
        nonlocal tries
        tries += 1
        if tries == 1:
            assert route.fetch().status == 200
            route.abort()
        else:
            route.continue_()

    again.route("**/vote", swallow)
    again.goto(address)
    stage.arrived(again, battle)
    expect(waiting(again)).to_have_count(0)
    assert tries == 2
    assert stage.votes() == [(battle, "a")]


def test_a_cut_network_keeps_votes_in_the_browser_until_it_is_back(stage: Stage) -> None:
    page = stage.sit("olga", "engineer")
    first = stage.ask(page, "tea?")
    page.context.set_offline(True)
    page.keyboard.press("b")
    expect(waiting(page)).to_be_visible()
    # Another page of the dashboard sends it as well.
    page.keyboard.press("n")
    expect(page.get_by_role("textbox", name="Prompt")).to_be_visible()
    page.context.set_offline(False)
    expect(waiting(page)).to_have_count(0)
    assert stage.votes() == [(first, "b")]

    second = stage.ask(page, "coffee?")
    assert not [name for name in NAMES if name in page.locator("main").inner_text()]
    page.get_by_role("textbox", name="Ask both again").fill("And milk?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Turn")).to_have_count(2)
    write_answers(stage.sessions, second, ("Milk!", "None."))
    expect(page.get_by_role("group", name="Your vote")).to_be_visible()
    assert faults_of(page, "arena-battle") == {}
    page.get_by_role("button", name="Tie").click()
    expect(page.get_by_text("Your vote: a tie.")).to_be_visible()
    expect(page.get_by_text("A is ")).to_be_visible()
    assert dict(stage.votes()) == {first: "b", second: "tie"}

    page.get_by_role("tab", name="Leaderboard").click()
    expect(page.get_by_text("2 votes")).to_be_visible()
    assert faults_of(page, "arena-leaderboard") == {}
    page.goto("/p/default/arena")
    expect(page.get_by_role("textbox", name="Prompt")).to_be_visible()
    assert faults_of(page, "arena-prompt") == {}


@pytest.mark.long
def test_four_answer_side_by_side_and_a_key_chooses_the_best(stage: Stage) -> None:
    page = stage.sit("erik", "engineer")
    page.get_by_role("button", name="New arena").click()
    form = page.get_by_role("dialog", name="New arena")
    form.get_by_label("Name").fill("quartet")
    form.get_by_role("combobox", name="Answers side by side").click()
    page.get_by_role("option", name="4").click()
    form.get_by_role("combobox", name="Entrants").click()
    for name in NAMES[:3]:
        page.get_by_role("option", name=name).click()
    expect(form.get_by_text("Choose 1 more of them, or fewer answers")).to_be_visible()
    expect(form.get_by_role("button", name="Create")).to_be_disabled()
    page.get_by_role("option", name=NAMES[3]).click()
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_text("4 entrants")).to_be_visible()
    battle = stage.ask(page, "tea?", ("Yes.", "A leaf, dried.\n\n- black\n- green\n" * 3, "No.", "Perhaps. " * 40))
    assert faults_of(page, "arena-four") == {}
    page.keyboard.press("d")
    expect(page.get_by_text("Your vote: D is best.")).to_be_visible()
    stage.arrived(page, battle)
    assert stage.votes() == [(battle, "d")]
    assert faults_of(page, "arena-four-voted") == {}


@pytest.mark.long
def test_a_ranking_survives_a_killed_server_and_a_closed_page(
    server: Server, stage_of_server: Stage, token: str, home: Path
) -> None:
    """The ranking screen sends from the same outbox."""
    headers = {"Authorization": f"Bearer {token}"}
    client = httpx.Client(base_url=f"{server.url}/api/v1/projects/default/", headers=headers, timeout=PATIENCE)
    world = World(home, url=server.url, client=client)
    enter_evaluation(world)
    desks = Desks(world, stage_of_server.browser)
    campaign = desks.campaign("killed", limit=3)
    desk = desks.sit(campaign.annotator("kira"))
    address = desk.page.url
    desk.rank_by_keys()
    server.kill()
    desk.submit()
    expect(desk.banner()).to_contain_text("1 item is waiting")
    desk.page.close()
    server.start()
    assert campaign.rankings() == []
    again = desk.context.new_page()
    again.goto(address)
    expect(again.get_by_text("1 done, 2 left")).to_be_visible()
    assert right(campaign.arrive(1)) == [True]
