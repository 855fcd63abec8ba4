"""An arena of two in a real browser. The tests write the answers, as a worker would."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from dashboard_world import follow
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import Membership, Project, User
from steerboard.arena.schemas import ArenaIn
from steerboard.arena.service import create
from steerboard.arena.tables import Battle, Turn, Vote
from steerboard.platform.database import transaction
from support.patience import PATIENCE
from support.rows.arena_world import NAMES, add_endpoints, entrants, places_of, write_answers
from support.servers.served_app import served


@dataclass
class Stage:
    url: str
    sessions: sessionmaker[Session]
    browser: Browser

    def sit(self, name: str, role: str) -> Page:
        """A person's browser, at the arena."""
        with transaction(self.sessions) as session:
            user = User(name=name)
            session.add(user)
            session.flush()
            project = session.scalars(select(Project)).one()
            session.add(Membership(project_id=project.id, user_id=user.id, role=role))
            code, _ = service.create_sign_in_link(session, user.id)
        context = self.browser.new_context(base_url=self.url, bypass_csp=True)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        follow(page, f"{self.url}/sign-in/{code}")
        page.goto("/p/default/arena")
        return page

    def ask(self, page: Page, prompt: str, texts: Sequence[str] = ()) -> str:
        """A battle that all sides have answered; its id."""
        page.get_by_role("textbox", name="Prompt").fill(prompt)
        page.keyboard.press("Control+Enter")
        page.wait_for_url(re.compile(r"[?&]b="))
        expect(page.get_by_role("article", name="Answer A")).to_be_visible()
        with self.sessions() as session:
            battle = str(session.scalars(select(Battle.id).order_by(Battle.created_at.desc()).limit(1)).one())
        write_answers(self.sessions, battle, texts or (f"Yes to {prompt}", f"No to {prompt}"))
        expect(page.get_by_role("group", name="Your vote")).to_be_visible()
        return battle

    def votes(self) -> list[tuple[str, str]]:
        with self.sessions() as session:
            return [(str(vote.battle_id), vote.verdict) for vote in session.scalars(select(Vote))]

    def turns_of(self, battle: str) -> int:
        with self.sessions() as session:
            return len(session.scalars(select(Turn.place).where(Turn.battle_id == uuid.UUID(battle))).all())

    def arrived(self, page: Page, battle: str) -> None:
        """The vote has, and the page names who answered."""
        for letter, place in zip("ABCD", places_of(self.sessions, battle), strict=False):
            expect(page.get_by_role("article", name=f"Answer {letter}").last.get_by_text(NAMES[place])).to_be_visible()


@contextmanager
def arena_at(url: str, sessions: sessionmaker[Session], project: Project, browser: Browser) -> Iterator[Stage]:
    """An arena of two on this server; the browser is closed before it."""
    add_endpoints(sessions, project)
    with transaction(sessions) as session:
        asked: Any = {"name": "quokka", "entrants": entrants(NAMES[:2]), "categories": ["drinks"]}
        create(session, session.merge(project), ArenaIn.model_validate(asked), "test")
    yield Stage(url, sessions, browser)
    for context in browser.contexts:
        context.close()


@pytest.fixture
def stage(
    dashboard: None, app: FastAPI, sessions: sessionmaker[Session], project: Project, browser: Browser
) -> Iterator[Stage]:
    """The arena on a server in this process: another one would import everything again."""
    with served(app) as url, arena_at(url, sessions, project, browser) as made:
        yield made
