from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_world import NAMED, RECIPE, World, follow, instructions, preferences
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from ranking_desks import Desks, enter_evaluation
from sqlalchemy.orm import Session, sessionmaker
from steered_policy import RECIPE as STEERED
from steered_policy import graded, pairs

from steerboard.accounts import service
from steerboard.accounts.tables import Membership, Project, User
from steerboard.app.dashboard import BUILD
from steerboard.platform.database import transaction
from support.patience import PATIENCE
from support.processes.chromium import CHROMIUM
from support.servers.served_app import served

# Browser, server, worker and stages share whatever cores there are.
expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="session")
def dashboard() -> None:
    """What servers need to show pages."""
    if not (BUILD / "index.html").is_file():
        pytest.skip("the dashboard is not built: make web")


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, stage_parent: Path, dashboard: None) -> Iterator[World]:
    running = World(tmp_path_factory.mktemp("dashboard"), stage_parent)
    running.start()
    running.import_rows("things", "instructions", instructions())
    running.import_rows("pairs", "preferences", preferences())
    yield running
    running.stop()


@pytest.fixture(scope="session")
def pipeline(world: World) -> str:
    """A finished pipeline."""
    body = {"text": RECIPE, "set": ["instructions=things", "preferences=pairs"]}
    answer = world.client.post("pipelines", json=body)
    answer.raise_for_status()
    name = str(answer.json()["name"])
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ("succeeded", "failed"), name)
    assert world.get(f"pipelines/{name}")["state"] == "succeeded"
    return name


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", f"--host-resolver-rules=MAP {NAMED} 127.0.0.1"]
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="session")
def signed_in(world: World, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cookie of the owner, signed in once through the link."""
    context = browser.new_context()
    page = context.new_page()
    follow(page, world.sign_in_link())
    page.wait_for_url("**/p/default**")
    path = tmp_path_factory.mktemp("state") / "state.json"
    context.storage_state(path=path)
    context.close()
    return path


@pytest.fixture
def context(browser: Browser, signed_in: Path, world: World) -> Iterator[BrowserContext]:
    # axe is put into pages as a script of its own, which the pages' policy forbids.
    made = browser.new_context(storage_state=signed_in, base_url=world.url, bypass_csp=True)
    made.set_default_timeout(1000 * PATIENCE)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Errors that a page throws, and what its policy blocks, fail the test."""
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    assert errors == []


@pytest.fixture
def rows_page(
    dashboard: None, app: FastAPI, sessions: sessionmaker[Session], project: Project, browser: Browser
) -> Iterator[Page]:
    """The owner's, on a server in this process without a worker: it shows the rows that the test has written."""
    with transaction(sessions) as session:
        user = User(name="ann")
        session.add(user)
        session.flush()
        session.add(Membership(project_id=project.id, user_id=user.id, role="owner"))
        code, _ = service.create_sign_in_link(session, user.id)
    with served(app) as url:
        context = browser.new_context(base_url=url, bypass_csp=True)
        context.set_default_timeout(1000 * PATIENCE)
        opened = context.new_page()
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        follow(opened, f"{url}/sign-in/{code}")
        yield opened
        context.close()
    assert errors == []


@pytest.fixture(scope="session")
def ranked_evaluation(world: World) -> None:
    enter_evaluation(world)


@pytest.fixture
def desks(world: World, browser: Browser, ranked_evaluation: None) -> Iterator[Desks]:
    made = Desks(world, browser)
    yield made
    errors = [error for desk in made.open for error in desk.errors]
    for desk in made.open:
        desk.context.close()
    assert errors == []


@pytest.fixture(scope="session")
def steered(world: World) -> str:
    """A policy whose answers follow the requested reward."""
    world.import_rows("graded", "labelled", graded())
    world.import_rows("graded-pairs", "preferences", pairs())
    answer = world.client.post("pipelines", json={"text": STEERED, "set": ["graded=graded", "pairs=graded-pairs"]})
    answer.raise_for_status()
    name = str(answer.json()["name"])
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ("succeeded", "failed"), name)
    assert world.get(f"pipelines/{name}")["state"] == "succeeded"
    return f"{name}.dt"
