"""People with browsers, and every route of the app."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker
from starlette.routing import Mount

from steerboard.accounts import members, service
from steerboard.accounts.tables import Project
from steerboard.app.tables import metadata
from steerboard.platform.database import new_id, transaction
from support.servers.app_client import AppClient

SESSION = "/api/v1/session"
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


def code_of(refused: httpx.Response) -> str:
    """The code of a problem document, or of an error in the form of OpenAI's API."""
    problem = refused.json()
    return str(problem["code"] if "code" in problem else problem["error"]["code"])


class Browser:
    """Sends the CSRF token as the dashboard does."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def session(self) -> Any:
        return self.client.get(SESSION).json()

    def send(self, method: str, path: str, json: Any = None) -> httpx.Response:
        csrf = self.client.get(SESSION).json().get("csrf_token", "")
        return self.client.request(method, path, json=json, headers={"X-CSRF-Token": csrf})

    def sign_in(self, user: str, password: str, **headers: str) -> httpx.Response:
        return self.client.post(SESSION, json={"user": user, "password": password}, headers=headers)


class People(ExitStack):
    """Makes people with a role in `project`, and browsers."""

    def __init__(self, app: FastAPI, sessions: sessionmaker[Session], project: Project) -> None:
        super().__init__()
        self.app, self.sessions, self.project = app, sessions, project

    def browser(self, address: str = "testclient") -> Browser:
        """No one is signed in."""
        return Browser(self.enter_context(AppClient(self.app, client=(address, 50000))))

    def add(self, name: str, role: Any, project: Project | None = None) -> Browser:
        """Signed in by a link."""
        with transaction(self.sessions) as session:
            _, user, _ = members.add(session, project or self.project, name, role)
            code, _ = service.create_sign_in_link(session, user.id)
        browser = self.browser()
        assert browser.client.post(f"/sign-in/{code}", follow_redirects=False).status_code == 303
        return browser

    def with_password(self, name: str, password: str, role: Any = "engineer") -> Browser:
        browser = self.add(name, role)
        answer = browser.send("PUT", f"{SESSION}/password", {"new": password})
        assert answer.status_code == 200, answer.text
        return browser

    def rows(self) -> dict[str, list[str]]:
        """Every row of every table."""
        with self.sessions() as session:
            return {name: sorted(session.scalars(text(f"SELECT t::text FROM {name} t"))) for name in metadata.tables}


@dataclass(frozen=True)
class Endpoint:
    method: str
    template: str

    @property
    def path(self) -> str:
        """The path in the project `default`, with ids that nothing has."""
        path = self.template.replace("{project}", "default")
        return re.sub(r"{[^}]+}", lambda _: str(new_id()), path)


def endpoints(app: FastAPI) -> Iterator[Endpoint]:
    """The endpoints of the whole app, whether the API's description lists them or not."""
    yield from _walk(app.routes, "")


def _walk(routes: Iterable[Any], prefix: str) -> Iterator[Endpoint]:
    for route in routes:
        included = getattr(route, "effective_route_contexts", None)
        for each in included() if included else [route]:
            path = prefix + each.path
            if isinstance(each, Mount):
                # An app without routes of its own, such as one of files, answers whatever is below it.
                yield from _walk(each.routes, path) if each.routes else [Endpoint("GET", path + "/{path:path}")]
            else:
                for method in (each.methods or {"GET"}) - {"HEAD"}:
                    yield Endpoint(method, path)
