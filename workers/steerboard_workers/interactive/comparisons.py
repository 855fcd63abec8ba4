"""Serving a comparison: columns of one model and decoding are one batch, and each answer is scored as it ends."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import func
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.leases import LeaseLost
from steerboard.playground import claims
from steerboard.playground.claims import Claim
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.engines.protocol import Completion, Delta, Request
from steerboard_workers.interactive.answer_writer import AnswerWriter
from steerboard_workers.interactive.errors import problem_of, with_memory
from steerboard_workers.interactive.leases import Stopping
from steerboard_workers.interactive.models import HeldModel, ModelCache, NotAtHand
from steerboard_workers.interactive.remote import RemoteAnswers
from steerboard_workers.interactive.rewards import own_units, rewards_of


@dataclass
class _Part:
    """One text being written, for all columns that ask for exactly it."""

    places: list[int]
    text: str = ""
    tokens: int = 0
    first_token_seconds: float | None = None
    unscored: bool = False


@dataclass
class _Group:
    """Columns that share model and decoding. `parts` by the row of their request."""

    model_id: uuid.UUID | None
    name: str
    decoding: Decoding
    parts: dict[int, _Part] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    normaliser: Normaliser | None = None

    @property
    def places(self) -> list[int]:
        return [place for part in self.parts.values() for place in part.places]


class ComparisonServer:
    """Serves any thread, a comparison each. Models compute in processes of their own (`ModelHost`); endpoints answer in
    threads of their own (`RemoteAnswers`)."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        models: ModelCache,
        remote: RemoteAnswers,
        stopping: threading.Event,
    ) -> None:
        self._sessions = sessions
        self._models = models
        self._remote = remote
        self._stopping = stopping

    def serve(self, claim: Claim[Comparison]) -> None:
        """Serves until every local column has ended. Raises `Stopping`; a claim that is lost just ends it."""
        try:
            with transaction(self._sessions) as session:
                comparison, answers = claims.open_answers(session, claim)
            writer = AnswerWriter(self._sessions, claim, self._stopping)
            # First, so that they write while the local ones are computed.
            for answer in answers:
                if answer.endpoint_id is not None:
                    self._remote.start(claim, comparison, answer, self.score)
            for group in _groups(comparison, [a for a in answers if a.endpoint_id is None]):
                self._answer(comparison, group, writer)
        except LeaseLost:
            return

    def _answer(self, comparison: Comparison, group: _Group, writer: AnswerWriter) -> None:
        """One bad model or prompt fails its columns, and no others."""
        try:
            with_memory(self._models, lambda: self._decode(comparison, group, writer), blind=comparison.blind)
        except (LeaseLost, Stopping, SQLAlchemyError):
            raise
        except Exception as error:
            for place in group.places:
                writer.set(place, state="failed", error=problem_of(error))
            writer.flush()
            return
        for part in group.parts.values():
            if part.unscored:
                for place in part.places:
                    self.score(comparison, place, part.text, group.normaliser, writer)

    def _decode(self, comparison: Comparison, group: _Group, writer: AnswerWriter) -> None:
        """Write all texts of a group. With the reward model at hand, answers end here; else their texts do."""
        if group.model_id is None:
            # With its row the database also forgot whether it was a model or an endpoint.
            raise NotFound(f"{group.name} was deleted before it could answer")
        if not self._models.at_hand(group.model_id):
            for place in group.places:
                writer.set(place, waits_for=f"loading {group.name}")
            writer.flush()
        with self._models.using(group.model_id, writer.wanted, blind=comparison.blind) as held:
            group.normaliser = held.normaliser
            self._write_texts(comparison, group, held, writer)

    def _write_texts(self, comparison: Comparison, group: _Group, held: HeldModel, writer: AnswerWriter) -> None:
        for part in group.parts.values():
            part.text, part.tokens, part.first_token_seconds, part.unscored = "", 0, None, False
            for place in part.places:
                writer.set(place, state="running", waits_for=None, started_at=func.clock_timestamp(), text="", tokens=0)
        writer.flush()
        began = time.monotonic()

        def show(delta: Delta) -> None:
            part = group.parts[delta.row]
            seconds = time.monotonic() - began
            part.text += delta.text
            part.tokens += 1
            part.first_token_seconds = part.first_token_seconds or seconds
            if delta.completion is None:
                for place in part.places:
                    writer.set(place, text=part.text, tokens=part.tokens, first_token_seconds=part.first_token_seconds)
                writer.flush_sometimes()
            else:
                self._text_ended(comparison, group, part, delta.completion, seconds, writer)

        held.host.generate(group.requests, group.decoding, comparison.seed, show, writer.wanted)

    def _text_ended(
        self,
        comparison: Comparison,
        group: _Group,
        part: _Part,
        completion: Completion,
        seconds: float,
        writer: AnswerWriter,
    ) -> None:
        part.text = completion.text
        for place in part.places:
            writer.set(
                place,
                text=completion.text,
                tokens=completion.tokens,
                prompt_tokens=completion.prompt_tokens,
                finished=completion.finished,
                first_token_seconds=part.first_token_seconds,
                seconds=seconds,
                waits_for="its reward" if comparison.reward_model_id else None,
            )
        writer.flush()
        # Loading a reward model here would hold up the other columns.
        if comparison.reward_model_id is not None and not self._models.at_hand(comparison.reward_model_id):
            part.unscored = True
            return
        try:
            for place in part.places:
                self.score(comparison, place, part.text, group.normaliser, writer, load=False)
        except NotAtHand:
            part.unscored = True

    def score(
        self,
        comparison: Comparison,
        place: int,
        text: str,
        normaliser: Normaliser | None,
        writer: AnswerWriter,
        *,
        load: bool = True,
    ) -> None:
        """End an answer whose text is complete, with its reward where one was asked for. Raises `NotAtHand` where its
        model is not in memory and must not be loaded."""
        # The id is gone when the model is; the name shows that a reward was requested.
        if comparison.reward_model_name is None:
            writer.now(place, state="succeeded")
            return
        if load and comparison.reward_model_id is not None and not self._models.at_hand(comparison.reward_model_id):
            writer.now(place, waits_for=f"loading {comparison.reward_model_name}")
        try:
            work = partial(self._reward, comparison, text, normaliser, writer, load)
            reward, z = with_memory(self._models, work, blind=comparison.blind)
        except (LeaseLost, Stopping, NotAtHand, SQLAlchemyError):
            raise
        except Exception as error:
            writer.now(place, state="failed", error=problem_of(error))
            return
        writer.now(place, state="succeeded", reward=reward, reward_z=z)

    def _reward(
        self, comparison: Comparison, text: str, normaliser: Normaliser | None, writer: AnswerWriter, load: bool
    ) -> tuple[float, float | None]:
        blind = comparison.blind
        with self._models.using(comparison.reward_model_id, writer.wanted, load=load, blind=blind) as reward_model:
            reward = rewards_of(reward_model, [(comparison.prompt, text)], writer.wanted)[0]
        units = own_units(normaliser, reward_model)
        return reward, units.z(reward) if units else None


def _groups(comparison: Comparison, answers: list[PlaygroundAnswer]) -> list[_Group]:
    """Columns by (model, decoding), in the order of their places. Equal columns share one text."""
    groups: dict[tuple[uuid.UUID | str, str], _Group] = {}
    rows: dict[int, dict[str, int]] = defaultdict(dict)
    for answer in answers:
        key = (answer.model_id or answer.name, json.dumps(answer.decoding, sort_keys=True))
        group = groups.setdefault(key, _Group(answer.model_id, answer.name, Decoding(**answer.decoding)))
        known = rows[id(group)]
        asked = (answer.score_text or "") + (json.dumps(answer.prompt) if answer.prompt else "")
        if asked not in known:
            known[asked] = row = _row_of(asked)
            group.parts[row] = _Part([])
            group.requests.append(Request(row, answer.prompt or comparison.prompt, answer.score_text))
        group.parts[known[asked]].places.append(answer.place)
    return list(groups.values())


def _row_of(asked: str) -> int:
    """The number that decides, with the seed, the randomness of an answer: by the score and a prompt of its own, so
    that the place of a column does not."""
    return int.from_bytes(hashlib.sha256(asked.encode()).digest()[:4], "big")
