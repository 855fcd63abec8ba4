"""What a column of a comparison asks for: who answers, with which score, and the key of equal answers."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.playground.errors import NoScores, WrongRole
from steerboard.playground.schemas import ColumnIn
from steerboard.registry.endpoints.service import check_guidance, get_endpoint
from steerboard.registry.service import get_model
from steerboard.registry.tables import Endpoint, Model
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.decoding import no_guidance
from steerboard_contracts.methods import conditioned_labels
from steerboard_contracts.models import POLICIES, ModelInfo, what_to_name


@dataclass(frozen=True)
class Column:
    """A column that can be answered. `score_text` is what is really asked for, clamped and rounded. `source` identifies
    who answers, down to the weights."""

    name: str
    score: Condition | None
    score_text: str | None
    source: str
    model_id: uuid.UUID | None = None
    endpoint_id: uuid.UUID | None = None


def resolve(session: Session, project: Project, given: ColumnIn, place: int) -> Column:
    """Raises `NotFound`, `WrongRole`, `NoScores`, naming the column, and `BadInput` (`no_guidance` among others)."""
    asks = f"columns[{place}] asks for score"
    if given.endpoint is not None:
        endpoint = get_endpoint(session, project, given.endpoint)
        served = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
        score, text = written(served, given.score, asks)
        check_guidance(endpoint, served, given.decoding.guidance)
        return Column(endpoint.name, score, text, endpoint_source(endpoint), endpoint_id=endpoint.id)
    assert given.model is not None
    model = policy(session, project, given.model)
    score, text = written(model, given.score, asks)
    if given.decoding.guidance != 1 and condition_format(model) is None:
        raise no_guidance(given.decoding.guidance, f"from {model.name!r}, a model that does not take scores")
    return Column(model.name, score, text, f"model:{model.id}", model_id=model.id)


def endpoint_source(endpoint: Endpoint) -> str:
    """Who answers at an endpoint, as it is configured now."""
    return f"endpoint:{endpoint.id} {endpoint.base_url} {endpoint.model} {endpoint.policy_model_id}"


def policy(session: Session, project: Project, ref: str) -> Model:
    """A model that writes answers. Raises `NotFound`, `WrongRole`."""
    model = get_model(session, project, ref)
    if model.role not in POLICIES:
        raise WrongRole(
            f"{model.name} is a {model.role} model and writes no answers",
            hint=f"Choose a model of role {', '.join(sorted(POLICIES))}.",
        )
    return model


def reward_model(session: Session, project: Project, ref: str) -> Model:
    """A model that scores answers. Raises `NotFound`, `WrongRole`."""
    model = get_model(session, project, ref)
    if model.role != "reward":
        raise WrongRole(
            f"{model.name} is a {model.role} model, which does not score answers",
            hint=what_to_name(model.role, ("reward",)),
        )
    return model


def condition_format(model: Model) -> ConditionFormat | None:
    return ModelInfo.model_validate(model.info).condition if model.info else None


def written(model: Model | None, score: Condition | None, asks: str) -> tuple[Condition | None, str | None]:
    """(condition, its text) for a policy; its own default where none is asked for, and two nulls where it knows none.

    Raises `NoScores`, whose message `asks` begins, and `BadInput` (`unknown_attribute`).
    """
    form = condition_format(model) if model is not None else None
    if form is not None:
        wanted = form.resolve(score)
        return (None, None) if score is None and not wanted.root else (wanted, form.text(wanted))
    if score is None:
        return None, None
    of = f"{model.name}, which was not trained with scores" if model else "an endpoint without a policy that takes any"
    raise NoScores(
        f"{asks} {score:g} of {of}",
        hint=f"Only policies of {conditioned_labels()} take scores; leave the score out for others.",
    )


def reuse_key(
    project_id: uuid.UUID,
    source: str,
    score_text: str | None,
    decoding: dict[str, Any],
    seed: int,
    prompt: list[dict[str, str]],
    reward: object,
) -> str:
    """SHA-256 of all that decides an answer and its reward."""
    parts = [str(project_id), source, score_text, decoding, seed, prompt, str(reward)]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()
