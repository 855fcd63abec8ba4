"""Columns that an endpoint answers: a thread each, so that neither they nor the local ones wait for the other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing

from sqlalchemy import func
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.leases import LeaseLost
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.playground.claims import Claim
from steerboard.playground.columns import endpoint_source, reuse_key
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.registry.endpoints.chat import ChatRequest, Connection, Finish, guidance_of
from steerboard.registry.endpoints.providers import connect
from steerboard.registry.endpoints.service import key_of
from steerboard.registry.tables import Endpoint, Model
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.interactive.answer_writer import AnswerWriter
from steerboard_workers.interactive.errors import problem_of
from steerboard_workers.interactive.leases import LeaseHolder, Stopping

log = logging.getLogger(__name__)

Score = Callable[[Comparison, int, str, Normaliser | None, AnswerWriter], None]

_STEP_SECONDS = 60.0
_TOTAL_SECONDS = 600.0
_MOST_AT_ONCE = 16
_NEW_TOKENS = 256


class RemoteAnswers:
    """A thread for each."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        settings: Settings,
        lease_holder: LeaseHolder,
        stopping: threading.Event,
    ) -> None:
        self._sessions = sessions
        self._settings = settings
        self._lease_holder = lease_holder
        self._stopping = stopping
        self._slots = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def start(self, claim: Claim[Comparison], comparison: Comparison, answer: PlaygroundAnswer, score: Score) -> None:
        """Begin to answer one column; its lease is kept until the answer has ended."""
        self._lease_holder.hold(claim)
        thread = threading.Thread(target=self._run, args=(claim, comparison, answer, score), daemon=True)
        thread.start()

    def _run(self, claim: Claim[Comparison], comparison: Comparison, answer: PlaygroundAnswer, score: Score) -> None:
        writer = AnswerWriter(self._sessions, claim, self._stopping)
        try:
            with self._slots:
                text, normaliser = self._write(comparison, answer, writer)
        except Stopping:
            return
        except (LeaseLost, SQLAlchemyError) as error:
            # After an outage of the database the lease runs out, and the answer is started over.
            log.warning("an endpoint's answer was abandoned: %s", error)
            self._lease_holder.drop(claim)
            return
        except Exception as error:
            problem = problem_of(error)
            self._end(claim, lambda: writer.now(answer.place, state="failed", error=problem))
            return
        self._end(claim, lambda: score(comparison, answer.place, text, normaliser, writer))

    def _end(self, claim: Claim[Comparison], last: Callable[[], None]) -> None:
        """The lease of what is stopped is kept, for the worker to give it back."""
        try:
            last()
        except Stopping:
            return
        except (LeaseLost, SQLAlchemyError) as error:
            log.warning("an endpoint's answer was abandoned: %s", error)
        self._lease_holder.drop(claim)

    def _write(
        self, comparison: Comparison, answer: PlaygroundAnswer, writer: AnswerWriter
    ) -> tuple[str, Normaliser | None]:
        """The complete text, and the normaliser of the policy that the endpoint serves."""
        with transaction(self._sessions) as session:
            endpoint = session.get(Endpoint, answer.endpoint_id)
            if endpoint is None:
                raise NotFound("the endpoint was deleted", code="unknown_endpoint")
            policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
            given = policy.info.get("normaliser") if policy else None
        key = key_of(Secrets(self._settings), endpoint)
        writer.now(
            answer.place,
            state="running",
            waits_for=None,
            started_at=func.clock_timestamp(),
            # If the endpoint has changed since the question, this answer must not be reused for the old one.
            reuse_key=reuse_key(
                comparison.project_id,
                endpoint_source(endpoint),
                answer.score_text,
                answer.decoding,
                comparison.seed,
                answer.prompt or comparison.prompt,
                comparison.reward_model_id,
            ),
        )
        began = time.monotonic()
        text, pieces, first = "", 0, None
        provider = connect(Connection(self._settings, endpoint.base_url, key, _STEP_SECONDS, _TOTAL_SECONDS))
        with closing(provider.stream(_request(endpoint, comparison, answer))) as stream:
            for piece in stream:
                seconds = time.monotonic() - began
                if isinstance(piece, Finish):
                    tokens = piece.completion_tokens if piece.completion_tokens is not None else pieces
                    counted = {"tokens": tokens, "prompt_tokens": piece.prompt_tokens}
                    writer.set(answer.place, **counted, finished=piece.reason == "stop", seconds=seconds)
                    break
                text, pieces, first = text + piece, pieces + 1, first or seconds
                writer.set(answer.place, text=text, tokens=pieces, first_token_seconds=first)
                if pieces == 1:
                    writer.flush()  # the next piece may take long
                else:
                    writer.flush_sometimes()
        if comparison.reward_model_id:
            writer.set(answer.place, waits_for="its reward")
        writer.flush()
        return text, Normaliser.model_validate(given) if given else None


def _request(endpoint: Endpoint, comparison: Comparison, answer: PlaygroundAnswer) -> ChatRequest:
    decoding = Decoding(**answer.decoding)
    return ChatRequest(
        model=endpoint.model,
        messages=answer.prompt or comparison.prompt,
        temperature=decoding.temperature,
        max_tokens=decoding.max_new_tokens or _NEW_TOKENS,
        top_p=decoding.top_p,
        top_k=decoding.top_k,
        stop=decoding.stop,
        seed=comparison.seed,
        score_text=answer.score_text,
        guidance=guidance_of(endpoint.guides, decoding.guidance, endpoint.name),
    )
