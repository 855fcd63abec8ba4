"""Measuring a control curve in small steps, so that comparisons can go between them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker, undefer

from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.leases import LeaseLost
from steerboard.playground import claims
from steerboard.playground.claims import Claim
from steerboard.playground.columns import condition_format
from steerboard.playground.curves import announce
from steerboard.playground.errors import problem_document
from steerboard.playground.schemas import CurvePoint
from steerboard.playground.tables import Curve
from steerboard.registry.tables import Model
from steerboard_contracts.conditions.condition import Condition, varied
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.prompts import Normaliser
from steerboard_statistics.bootstrap import Interval, Resamples
from steerboard_statistics.correlation import spearman
from steerboard_workers.engines.protocol import Completion, Delta, Request
from steerboard_workers.interactive.errors import problem_of, with_memory
from steerboard_workers.interactive.leases import LeaseHolder, Stopping, Wanted
from steerboard_workers.interactive.models import HeldModel, ModelCache
from steerboard_workers.interactive.rewards import own_units, rewards_of

# Prompts answered in one step: what a comparison may have to wait for.
ANSWER_BATCH = 8
SCORE_BATCH = 32
_RESAMPLES = 2000


@dataclass
class _Work:
    """A curve in hand. The point being measured has `texts` and `rewards` for its first prompts."""

    claim: Claim[Curve]
    curve: Curve
    form: ConditionFormat
    normaliser: Normaliser | None
    points: list[dict[str, Any]]
    wanted: Wanted
    texts: list[str] = field(default_factory=list)
    tokens: int = 0
    rewards: list[float] = field(default_factory=list)

    @property
    def score(self) -> Condition:
        return Condition.model_validate(self.curve.scores[len(self.points)])

    @property
    def score_text(self) -> str:
        return self.form.text(self.score)

    @property
    def done(self) -> int:
        return len(self.points) * len(self.curve.prompts) + len(self.texts)


class CurveServer:
    """A server with at most one curve in hand, for one thread at a time."""

    def __init__(
        self, sessions: sessionmaker[Session], models: ModelCache, lease_holder: LeaseHolder, stopping: threading.Event
    ) -> None:
        self._sessions = sessions
        self._models = models
        self._lease_holder = lease_holder
        self._stopping = stopping
        self._work: _Work | None = None

    def step(self) -> bool:
        """A small part of the oldest open curve; False when there is none. Raises `Stopping`."""
        work = self._work = self._work or self._take()
        if work is None:
            return False
        try:
            with_memory(self._models, lambda: self._advance(work))
        except Stopping:
            raise
        except LeaseLost:
            self._put_down(work)
        except SQLAlchemyError:
            # The lease runs out, and then the curve continues from its last point.
            self._put_down(work)
            raise
        except Exception as error:
            self._put_down(work)
            self._fail(work.claim, problem_of(error))
        return True

    def _take(self) -> _Work | None:
        with transaction(self._sessions) as session:
            claim = claims.claim_next(session, Curve, self._lease_holder.owner, self._lease_holder.lease_seconds)
            if claim is None:
                return None
            curve = session.get_one(Curve, claim.id, options=[undefer(Curve.prompts)], populate_existing=True)
            model = session.get(Model, curve.model_id)
            form = condition_format(model) if model else None
            given = model.info.get("normaliser") if model else None
            # A point that was not complete is measured again.
            curve.state, curve.done, curve.waits_for = "running", len(curve.points) * len(curve.prompts), None
            session.flush()
            announce(session, curve)
        if form is None:
            self._fail(claim, problem_document(NotFound(f"{curve.model_name} was deleted", code="unknown_model")))
            return None
        self._lease_holder.hold(claim)
        normaliser = Normaliser.model_validate(given) if given else None
        wanted = Wanted(self._sessions, claim, self._stopping)
        return _Work(claim, curve, form, normaliser, list(curve.points), wanted)

    def _put_down(self, work: _Work) -> None:
        self._work = None
        self._lease_holder.drop(work.claim)

    def _advance(self, work: _Work) -> None:
        prompts = work.curve.prompts
        equal = next((point for point in work.points if point["score_text"] == work.score_text), None)
        if equal is not None:
            # Both are written alike, so the answers are the same.
            self._add_point(work, {**equal, "score": work.score.plain()})
        elif len(work.texts) < len(prompts):
            self._write_some(work)
        elif len(work.rewards) < len(prompts):
            self._score_some(work)
        else:
            self._add_point(work, self._point(work))

    def _write_some(self, work: _Work) -> None:
        start = len(work.texts)
        # The row of a prompt is the same at every score, so that their draws are compared and not their luck.
        requests = [
            Request(row, prompt, work.score_text)
            for row, prompt in enumerate(work.curve.prompts[start : start + ANSWER_BATCH], start)
        ]
        done: list[Completion] = []

        def keep(delta: Delta) -> None:
            work.wanted()
            if delta.completion is not None:
                done.append(delta.completion)

        with self._using(work, work.curve.model_id, work.curve.model_name) as held:
            held.host.generate(requests, Decoding(**work.curve.decoding), work.curve.seed, keep, work.wanted)
        done.sort(key=lambda completion: completion.row)
        work.texts += [completion.text for completion in done]
        work.tokens += sum(completion.tokens for completion in done)
        self._note(work, done=work.done)

    def _score_some(self, work: _Work) -> None:
        start = len(work.rewards)
        places = range(start, min(start + SCORE_BATCH, len(work.texts)))
        with self._using(work, work.curve.reward_model_id, work.curve.reward_model_name) as reward_model:
            samples = [(work.curve.prompts[i], work.texts[i]) for i in places]
            work.rewards += rewards_of(reward_model, samples, work.wanted)
        work.normaliser = own_units(work.normaliser, reward_model)

    @contextmanager
    def _using(self, work: _Work, model_id: uuid.UUID, name: str) -> Iterator[HeldModel]:
        """A model, and what the curve waits for while it is loaded."""
        at_hand = self._models.at_hand(model_id)
        if not at_hand:
            self._note(work, waits_for=f"loading {name}")
        with self._models.using(model_id, work.wanted) as held:
            if not at_hand:
                self._note(work, waits_for=None)
            yield held

    def _point(self, work: _Work) -> dict[str, Any]:
        count = len(work.rewards)
        raw = Resamples(count, _RESAMPLES, work.curve.seed % 2**32).interval(work.rewards)
        z = Interval(*map(work.normaliser.z, raw)) if work.normaliser else None
        return CurvePoint(
            score=work.score,
            score_text=work.score_text,
            n=count,
            mean=raw.mean,
            low=raw.low,
            high=raw.high,
            mean_z=z.mean if z else None,
            low_z=z.low if z else None,
            high_z=z.high if z else None,
            mean_tokens=work.tokens / count,
        ).model_dump()

    def _add_point(self, work: _Work, point: dict[str, Any]) -> None:
        """Save it immediately; the last one ends the curve."""
        points = [*work.points, point]
        with transaction(self._sessions) as session:
            curve = claims.fenced(session, work.claim)
            curve.points, curve.done = points, len(points) * len(work.curve.prompts)
            if len(points) >= 3:
                asked = varied(Condition.model_validate(point["score"]) for point in points)
                curve.spearman = spearman(asked, [p["mean"] for p in points]) if asked else None
            if len(points) == len(curve.scores):
                curve.state, curve.waits_for, curve.ended_at = "succeeded", None, func.clock_timestamp()
                curve.lease_owner = None
            session.flush()
            announce(session, curve)
        work.points, work.texts, work.tokens, work.rewards = points, [], 0, []
        if len(points) == len(work.curve.scores):
            self._put_down(work)

    def _note(self, work: _Work, **values: Any) -> None:
        """Write how far it is; here a cancel is noticed. Raises `LeaseLost`, `Stopping`."""
        if self._stopping.is_set():
            raise Stopping
        with transaction(self._sessions) as session:
            curve = claims.fenced(session, work.claim)
            for name, value in values.items():
                setattr(curve, name, value)

    def _fail(self, claim: Claim[Curve], problem: dict[str, Any]) -> None:
        with suppress(LeaseLost), transaction(self._sessions) as session:
            curve = claims.fenced(session, claim)
            curve.state, curve.error, curve.waits_for, curve.lease_owner = "failed", problem, None, None
            curve.ended_at = func.clock_timestamp()
            session.flush()
            announce(session, curve)
