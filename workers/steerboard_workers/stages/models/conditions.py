"""What a policy is asked for, and how its prompts put it."""

from __future__ import annotations

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import conditioned_labels
from steerboard_contracts.models import ModelInfo


class NoScoreFormat(BadInput):
    """A score or another condition was requested of a model that was not trained with any."""

    code = "no_score_format"
    title = "This model does not take scores"


def resolved(info: ModelInfo, asked: Condition | None, name: str) -> Condition | None:
    """What a policy is asked for; its own default when `asked` is None, and None for a policy without conditions.

    Raises `NoScoreFormat`, and `BadInput` (`unknown_attribute`)."""
    if info.condition is not None:
        return info.condition.resolve(asked)
    if asked is not None:
        method = info.method or info.role
        raise NoScoreFormat(
            f"score {asked:g} was requested of {name}, a model of kind {method} that does not take scores",
            hint=f"Only policies of {conditioned_labels()} take scores; leave the score out for others.",
        )
    return None


def score_text(info: ModelInfo, asked: Condition | None, name: str) -> str | None:
    """How that is written into the prompt."""
    condition = resolved(info, asked, name)
    return info.condition.text(condition) if info.condition is not None and condition is not None else None
