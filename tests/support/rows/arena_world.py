"""An arena of endpoints whose answers the tests write, as a worker would, and people who vote."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import Membership, Project, User
from steerboard.arena.outcomes import LETTERS
from steerboard.arena.tables import Arena, Battle, Turn
from steerboard.platform.database import transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.registry.tables import Endpoint
from support.servers.app_client import AppClient

PROJECT = "/api/v1/projects/default"
NAMES = ("zebra-raw", "walrus-sft", "heron-dt", "lynx-ppo")


def add_endpoints(sessions: sessionmaker[Session], project: Project, names: tuple[str, ...] = NAMES) -> None:
    with transaction(sessions) as session:
        for name in names:
            session.add(
                Endpoint(project_id=project.id, name=name, base_url="http://127.0.0.1:1/v1", model=f"model-of-{name}")
            )


def entrants(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"endpoint": name} for name in names]


def places_of(sessions: sessionmaker[Session], battle: str) -> list[int]:
    with sessions() as session:
        return session.get_one(Battle, uuid.UUID(battle)).entrants


def write_answers(sessions: sessionmaker[Session], battle: str, texts: Sequence[str], state: str = "succeeded") -> None:
    """Writes the answers to the last turn of a battle, all at once."""
    with transaction(sessions) as session:
        turns = select(Turn).where(Turn.battle_id == uuid.UUID(battle)).order_by(Turn.place.desc()).limit(1)
        turn = session.scalars(turns).one()
        for place, text in enumerate(texts):
            session.execute(
                update(PlaygroundAnswer)
                .where(PlaygroundAnswer.comparison_id == turn.comparison_id, PlaygroundAnswer.place == place)
                .values(text=text, state=state, tokens=1, finished=True, ended_at=func.clock_timestamp())
            )
        ended = update(Comparison).where(Comparison.id == turn.comparison_id)
        session.execute(ended.values(ended_at=func.clock_timestamp()))


class ArenaWorld(ExitStack):
    def __init__(self, app: FastAPI, sessions: sessionmaker[Session], project: Project, owner: TestClient) -> None:
        super().__init__()
        self.app, self.sessions, self.project, self.owner = app, sessions, project, owner
        add_endpoints(sessions, project)
        self.key("a key of these tests")

    def arena(self, name: str = "quokka", names: tuple[str, ...] = NAMES[:2], status: int = 201, **given: Any) -> Any:
        """`seed`: its own, so that a test meets the same entrants every time."""
        seed = given.pop("seed", 1)
        body = {"name": name, "entrants": entrants(names), **given}
        answer = self.owner.post(f"{PROJECT}/arenas", json=body)
        assert answer.status_code == status, answer.text
        with transaction(self.sessions) as session:
            session.execute(update(Arena).where(Arena.name == name).values(seed=seed))
        return answer.json()

    def key(self, text: str) -> bytes:
        """The server has this secret key from now on; the key with which it pairs."""
        self.app.state.secrets = Secrets(Settings(secret_key=SecretStr(text)))
        return self.app.state.secrets.derived("arena pairing")

    def get(self, path: str, status: int = 200, **params: Any) -> Any:
        answer = self.owner.get(f"{PROJECT}/{path}", params=params)
        assert answer.status_code == status, answer.text
        return answer.json()

    def person(self, name: str, role: str = "annotator") -> Voter:
        """Signed in by a link."""
        with transaction(self.sessions) as session:
            user = User(name=name)
            session.add(user)
            session.flush()
            session.add(Membership(project_id=self.project.id, user_id=user.id, role=role))
            code, _ = service.create_sign_in_link(session, user.id)
        client = self.enter_context(AppClient(self.app))
        assert client.post(f"/sign-in/{code}", follow_redirects=False).status_code == 303
        client.headers["X-CSRF-Token"] = client.get("/api/v1/session").json()["csrf_token"]
        return Voter(self, client)

    def sides(self, battle: Any, names: tuple[str, ...] = NAMES) -> list[str]:
        """Who really answers, as A, as B and so on."""
        return [names[place] for place in places_of(self.sessions, battle["id"])]


class Voter:
    def __init__(self, world: ArenaWorld, client: TestClient) -> None:
        self.world, self.client = world, client

    def post(self, path: str, body: Any, status: int, **headers: str) -> Any:
        answer: httpx.Response = self.client.post(f"{PROJECT}/{path}", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    def begin(self, prompt: str = "What is tea?", arena: str = "quokka", status: int = 201, **given: Any) -> Any:
        return self.post(f"arenas/{arena}/battles", {"prompt": prompt, **given}, status)

    def again(self, battle: Any, prompt: str, status: int = 201, **headers: str) -> Any:
        return self.post(f"battles/{battle['id']}/turns", {"prompt": prompt}, status, **headers)

    def vote(
        self, battle: Any, verdict: str, status: int = 200, submission: str | None = None, turns: int | None = None
    ) -> Any:
        body = {"verdict": verdict, "submission": submission or str(uuid.uuid4()), "turns": turns}
        return self.post(f"battles/{battle['id']}/vote", body, status)

    def prefer(self, battle: Any, name: str) -> Any:
        """A vote for an entrant by its name, which only this test knows."""
        return self.vote(battle, LETTERS[self.world.sides(battle).index(name)])

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(f"{PROJECT}/{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    def answered(self, prompt: str = "What is tea?", texts: Sequence[str] = ("A drink.", "No."), **given: Any) -> Any:
        """A battle with all answers."""
        battle = self.begin(prompt, **given)
        write_answers(self.world.sessions, battle["id"], texts)
        return battle
