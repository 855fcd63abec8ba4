"""Evaluations with finished answers, an endpoint, and a judge at work in this process or in its own."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.evaluation.judge_tables import JudgeAnswer, Verdict
from steerboard.evaluation.judges import process
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run, RunAttempt, RunLog
from steerboard_contracts.errors import SteerboardError
from support.servers.other_server import Answer, OtherServer, Seen

SECRET = "sk-judge-4711-secret"
PROJECT = "/api/v1/projects/default"


@dataclass
class JudgeWorld:
    """`server` is the endpoint; it answers `[[7]]` to everything until a test changes that."""

    sessions: sessionmaker[Session]
    engine: Engine
    settings: Settings
    project: Project
    client: TestClient
    server: OtherServer

    def evaluation(
        self,
        name: str = "e",
        *,
        entrants: Sequence[str] = ("anna", "bert"),
        prompts: int = 2,
        turns: int = 1,
        category: str | None = None,
        reference: bool = False,
        answer: Callable[[str, int, int], str] = lambda who, position, turn: f"{who} says {position}.{turn}",
    ) -> uuid.UUID:
        with transaction(self.sessions) as session:
            made = Evaluation(
                project_id=self.project.id,
                name=name,
                description="",
                prompts_from={},
                checked_against=[],
                seed=0,
                version=0,
                created_by="tester",
            )
            session.add(made)
            session.flush()
            for position in range(prompts):
                session.add(
                    EvaluationPrompt(
                        evaluation_id=made.id,
                        position=position,
                        question_id=f"q{position}",
                        category=category,
                        messages=[{"role": "user", "content": f"question {position}?"}],
                        follow_ups=[f"and then {turn}?" for turn in range(2, turns + 1)],
                        reference=[f"truth {turn}" for turn in range(1, turns + 1)] if reference else None,
                    )
                )
            for place, who in enumerate(entrants):
                entrant = Entrant(
                    evaluation_id=made.id, position=place, name=who, source="import", decoding={}, samples=1
                )
                session.add(entrant)
                session.flush()
                for position in range(prompts):
                    texts = [answer(who, position, turn) for turn in range(1, turns + 1)]
                    session.add(Response(entrant_id=entrant.id, position=position, sample=0, turns=texts))
            return made.id

    def endpoint(self, name: str = "gpt-judge", *, url: str | None = None, key: str | None = SECRET) -> None:
        body = {"name": name, "base_url": f"{url or self.server.url}/v1", "model": "gpt-x", "api_key": key}
        answer = self.client.post(f"{PROJECT}/endpoints", json=body)
        assert answer.status_code == 201, answer.text

    def judge(self, style: str, *, evaluation: str = "e", name: str | None = None, **settings: Any) -> dict[str, Any]:
        """Start one, with quick retries."""
        body = {"style": style, "name": name, "endpoint": "gpt-judge", "settings": settings}
        answer = self.client.post(f"{PROJECT}/evaluations/{evaluation}/judges", json=body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def look(self, name: str, evaluation: str = "e") -> dict[str, Any]:
        answer = self.client.get(f"{PROJECT}/evaluations/{evaluation}/judges/{name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def verdicts(self, name: str, evaluation: str = "e", **params: Any) -> list[dict[str, Any]]:
        answer = self.client.get(
            f"{PROJECT}/evaluations/{evaluation}/judges/{name}/verdicts", params={"limit": 500, **params}
        )
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def claim(self, owner: str = "w") -> Claim:
        with transaction(self.sessions) as session:
            claim = claims.claim_next(session, pool="default", owner=owner, worker=owner, devices=1, lease_seconds=60)
        assert claim is not None
        return claim

    def work(self) -> list[dict[str, Any]]:
        """Do the queued run, as its process would, and end it as its worker would. Returns its events, in order."""
        claim = self.claim()
        said = io.StringIO()
        try:
            with transaction(self.sessions) as session:
                job = process.load(session, claim.run_id, claim.attempt)
            result = process.work(self.engine, self.sessions, self.settings, job, StageEventWriter(said))
        except (process.BudgetReached, process.EndpointDown, SteerboardError) as error:
            last = process.failure_of(error)
            failure = attempt_outcomes.Failure(last.code, last.detail, last.hint, retryable=last.retryable)
            with transaction(self.sessions) as session:
                attempt_outcomes.fail(session, claims.fenced(session, claim), failure, 0.0, 60.0)
        else:
            with transaction(self.sessions) as session:
                attempt_outcomes.succeed(session, claims.fenced(session, claim), result.summary, 0.0)
        return [json.loads(line) for line in said.getvalue().splitlines()]

    def judged(self, style: str, **settings: Any) -> dict[str, Any]:
        """A judge from start to end."""
        made = self.judge(style, **settings)
        self.work()
        return self.look(made["name"], str(settings.get("evaluation", "e")))

    def run(self, id_: str) -> Run:
        with transaction(self.sessions) as session:
            return session.get_one(Run, uuid.UUID(id_))

    def worker_of(self, id_: str) -> str:
        """Who works on the run now, by name."""
        with transaction(self.sessions) as session:
            run = session.get_one(Run, uuid.UUID(id_))
            return session.get_one(RunAttempt, (run.id, run.attempt)).worker

    def log_of(self, id_: str) -> list[str]:
        with transaction(self.sessions) as session:
            return list(session.scalars(select(RunLog.message).where(RunLog.run_id == uuid.UUID(id_))))

    def count(self, table: type[JudgeAnswer] | type[Verdict]) -> int:
        with transaction(self.sessions) as session:
            return len(session.scalars(select(table)).all())

    @property
    def prompts_seen(self) -> list[str]:
        """The user prompts that the endpoint got, in order."""
        return [seen.json["messages"][1]["content"] for seen in self.server.seen]


def completion(text: str | None, *, reason: str | None = "stop", logprobs: Any = None, **message: Any) -> Answer:
    """An answer as an OpenAI-compatible server gives it."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": reason,
    }
    if logprobs is not None:
        choice["logprobs"] = logprobs
    document = {
        "id": "x",
        "object": "chat.completion",
        "choices": [choice],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107},
    }
    return Answer.json(document)


def saying(*texts: str) -> Callable[[Seen], Answer]:
    """One text after the other, then the last one for good."""
    left = list(texts)
    return lambda _: completion(left.pop(0) if len(left) > 1 else left[0])


def post(world: JudgeWorld, body: dict[str, Any], evaluation: str = "e", **params: Any) -> Any:
    return world.client.post(f"{PROJECT}/evaluations/{evaluation}/judges", json=body, params=params)
