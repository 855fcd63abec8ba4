"""The model that an evaluation's entrants are compared with, answer by answer, for their perplexity under it and an
estimate of their KL to it.

An entrant's answer run has the model as its input `kl_to`. It gives each answer its log-prob under the model and, where
the answers were sampled plainly, its log-ratio.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.registry.service import get_model
from steerboard.registry.tables import Model
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import POLICIES

INPUT = "kl_to"


class KlTo(BaseModel):
    """The model as an evaluation keeps it, even when the model is deleted."""

    id: uuid.UUID
    name: str
    content_hash: str


def kl_to_of(evaluation: Evaluation) -> KlTo | None:
    return None if evaluation.kl_to is None else KlTo.model_validate(evaluation.kl_to)


def chosen(session: Session, project: Project, ref: str) -> dict[str, Any]:
    """What an evaluation keeps of the model. Raises `NotFound`, `BadInput` (`wrong_role`)."""
    model = get_model(session, project, ref)
    if model.role not in POLICIES:
        raise BadInput(
            f"{model.name!r} is a model of role {model.role}, and writes no answers to compare with",
            code="wrong_role",
            hint=f"Name a model of role {', '.join(sorted(POLICIES))}.",
        )
    return KlTo(id=model.id, name=model.name, content_hash=model.artifact_hash).model_dump(mode="json")


def no_estimate(source: str, decoding: Mapping[str, Any], best_of: int | None) -> str | None:
    """Why the answers of an entrant give no estimate; None where they do."""
    if source != "model":
        return "the weights behind its answers are not here"
    if best_of is not None:
        return "its answers were chosen and not sampled"
    if not decoding.get("temperature"):
        return "its answers are greedy, and only sampled ones give an estimate"
    if decoding.get("temperatures"):
        return "its temperature differs by category"
    if decoding.get("guidance", 1) != 1:
        return "guided answers are not from the model's own distribution"
    if decoding.get("top_p", 1) < 1 or decoding.get("top_k", 0) > 0:
        return "top_p or top_k leaves tokens out, so that they are not from the model's own distribution"
    return None


def inputs_of(session: Session, evaluation: Evaluation, entrant: Entrant) -> dict[str, InputRef]:
    """The model under which answers get log-probs, for the run of an entrant whose answers are made here."""
    kl_to = kl_to_of(evaluation)
    if kl_to is None or entrant.source != "model" or session.get(Model, kl_to.id) is None:
        return {}
    return {INPUT: InputRef(model=kl_to.id)}


def estimates_kl(evaluation: Evaluation, entrant: Entrant) -> bool:
    """Whether the answers of an entrant get log-ratios: where those give an estimate and the model is another one."""
    kl_to = kl_to_of(evaluation)
    if kl_to is None or no_estimate(entrant.source, entrant.decoding, entrant.best_of) is not None:
        return False
    return entrant.content_hash != kl_to.content_hash or entrant.score is not None
