"""An evaluation with answers, its campaigns, and annotators with and without browsers."""

from __future__ import annotations

import uuid
from collections import Counter
from contextlib import ExitStack
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import Membership, Project, User
from steerboard.evaluation.ranking.tables import RankingTask
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response
from steerboard.platform.database import new_id, transaction
from support.servers.app_client import AppClient

PROJECT = "/api/v1/projects/default"
RANKINGS = f"{PROJECT}/rankings"
NAMES = ("zebra-raw", "walrus-sft", "heron-dt", "lynx-ppo", "otter-best")


class RankingWorld(ExitStack):
    def __init__(self, app: FastAPI, sessions: sessionmaker[Session], project: Project, owner: TestClient) -> None:
        super().__init__()
        self.app, self.sessions, self.project, self.owner = app, sessions, project, owner

    def evaluation(
        self, name: str = "quokka-eval", prompts: int = 4, names: tuple[str, ...] = NAMES[:3], follow_ups: int = 0
    ) -> uuid.UUID:
        """Answers say which prompt and which number of answer they are, in words that no name occurs in."""
        with transaction(self.sessions) as session:
            evaluation = Evaluation(
                project_id=self.project.id,
                name=name,
                description="",
                prompts_from={},
                checked_against=[],
                seed=0,
                version=1,
                created_by="test",
            )
            session.add(evaluation)
            session.flush()
            later = [f"and then {turn}?" for turn in range(follow_ups)]
            session.add_all(
                EvaluationPrompt(
                    evaluation_id=evaluation.id,
                    position=position,
                    question_id=f"q{position}",
                    messages=[{"role": "user", "content": f"what is {position}?"}],
                    follow_ups=later,
                )
                for position in range(prompts)
            )
            for place, entrant_name in enumerate(names):
                entrant = Entrant(
                    id=new_id(),
                    evaluation_id=evaluation.id,
                    position=place,
                    name=entrant_name,
                    source="import",
                    decoding={},
                    samples=1,
                )
                session.add(entrant)
                session.flush()
                session.add_all(
                    Response(
                        entrant_id=entrant.id,
                        position=position,
                        sample=0,
                        turns=[f"text {position} {place} {turn}" for turn in range(1 + follow_ups)],
                    )
                    for position in range(prompts)
                )
            return evaluation.id

    def campaign(self, evaluation: str = "quokka-eval", status: int = 201, **given: Any) -> Any:
        answer = self.owner.post(f"{PROJECT}/evaluations/{evaluation}/campaigns", json=given)
        assert answer.status_code == status, answer.text
        return answer.json()

    def path(self, campaign: Any, tail: str = "", evaluation: str = "quokka-eval") -> str:
        return f"{PROJECT}/evaluations/{evaluation}/campaigns/{campaign['id']}{tail}"

    def figures(self, campaign: Any) -> Any:
        return self.owner.get(self.path(campaign)).json()

    def annotator(self, name: str, role: str = "annotator") -> Annotator:
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
        return Annotator(client, user.id)

    def expire(self, task: str | None = None) -> None:
        """Let locks run out: of one task, or all."""
        with transaction(self.sessions) as session:
            ended = update(RankingTask).values(locked_until=func.clock_timestamp() - text("interval '1 second'"))
            ended = ended.where(RankingTask.state == "locked")
            session.execute(ended.where(RankingTask.id == uuid.UUID(task)) if task else ended)

    def tasks(self) -> list[RankingTask]:
        with self.sessions() as session:
            return list(session.scalars(select(RankingTask).order_by(RankingTask.created_at)))

    def holders(self) -> Counter[uuid.UUID]:
        """Item to how many have ranked it or hold it at this moment."""
        live = (RankingTask.state == "submitted") | (RankingTask.locked_until > func.clock_timestamp())
        with self.sessions() as session:
            held = select(RankingTask.item_id).where(live)
            return Counter(session.scalars(held))


class Annotator:
    """`said`: every answer that the browser got, as text."""

    def __init__(self, client: TestClient, user_id: uuid.UUID) -> None:
        self.client, self.user_id = client, user_id
        self.said: list[str] = []

    def send(self, method: str, path: str, json: Any = None) -> httpx.Response:
        answer = self.client.request(method, f"{RANKINGS}{path}", json=json)
        self.said.append(answer.text + str(answer.headers))
        return answer

    def next(self, campaign: Any, ahead: int = 1) -> Any:
        answer = self.send("POST", f"/{campaign['id']}/next", {"ahead": ahead})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def first(self, campaign: Any) -> Any:
        return self.next(campaign)["items"][0]

    def submit(self, task: Any, ranks: list[int] | None = None, key: str = "", **more: Any) -> httpx.Response:
        body = {
            "ranks": ranks if ranks is not None else list(range(1, len(task["answers"]) + 1)),
            "seconds": 4.0,
            "submission": key or f"key-{uuid.uuid4()}",
            **more,
        }
        return self.send("POST", f"/tasks/{task['id']}/submit", body)

    def skip(self, task: Any, reason: str = "no idea", key: str = "") -> httpx.Response:
        body = {"reason": reason, "seconds": 1.0, "submission": key or f"key-{uuid.uuid4()}"}
        return self.send("POST", f"/tasks/{task['id']}/skip", body)

    def undo(self, task: Any) -> httpx.Response:
        return self.send("POST", f"/tasks/{task['id']}/undo")

    def draft(self, task: Any, **draft: Any) -> httpx.Response:
        return self.send("PUT", f"/tasks/{task['id']}/draft", draft)

    def rank_all(self, campaign: Any, most: int = 100) -> list[str]:
        """The prompts, in the order in which they came."""
        seen = []
        while len(seen) < most and (items := self.next(campaign)["items"]):
            seen.append(items[0]["prompt"]["messages"][-1]["content"])
            assert self.submit(items[0]).status_code == 200
        return seen
