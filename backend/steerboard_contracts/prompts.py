"""How a conversation becomes text, and how a reward becomes the reward prompt.

Text only; `steerboard_workers.alignment.render` turns the same segments into token ids.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard_contracts.errors import BadInput
from steerboard_contracts.samples import Finite

SCORE_MARKER = "<rm_score>"

# The paper's template as a chat template. The exported model answers the same through it (CONTRACTS.md);
# a decision-transformer policy gets the reward prompt after the last marker, see `plain_chat_template`.
TemplateName = Literal["plain", "chat"]


class Normaliser(BaseModel):
    """z = (R - mean) / sd over one whole labelled dataset, computed in float64 (population sd)."""

    mean: Finite
    sd: Annotated[Finite, Field(gt=0)]
    n: Annotated[int, Field(ge=2)]
    reward_source: str
    reward_model_hash: str | None = None

    def z(self, reward: float) -> float:
        return (reward - self.mean) / self.sd

    def raw(self, z: float) -> float:
        return z * self.sd + self.mean

    @classmethod
    def fit(cls, rewards: Sequence[float], reward_source: str, reward_model_hash: str | None = None) -> Normaliser:
        """Raises `BadInput` (`degenerate_rewards`) for fewer than two rewards, equal rewards or non-finite ones."""
        n = len(rewards)
        if any(not math.isfinite(r) for r in rewards):
            raise BadInput("a reward is not a finite number", code="non_finite_reward")
        if n < 2:
            raise BadInput(
                f"normalising needs at least 2 rewards, got {n}",
                code="degenerate_rewards",
                hint="Label more rows before aligning on them.",
            )
        mean = math.fsum(rewards) / n
        sd = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / n)
        if sd <= 1e-12 * max(1.0, abs(mean)):
            raise BadInput(
                f"all {n} rewards equal {mean:g}, so they cannot be normalised",
                code="degenerate_rewards",
                hint="A reward model that gives every answer the same score has not learned; check its accuracy.",
            )
        return cls(mean=mean, sd=sd, n=n, reward_source=reward_source, reward_model_hash=reward_model_hash)


class ScoreFormat(BaseModel):
    """How a score is written into the reward prompt: clamp, quantise, `%.2f`."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[Finite, Field(gt=0)] = 5.0
    step: Annotated[Finite, Field(gt=0)] = 0.1

    def value(self, score: float) -> float:
        """The score that is really written: clamped to +-limit and rounded to the nearest step."""
        if not math.isfinite(score):
            raise BadInput(f"a score must be a finite number, got {score}", code="non_finite_score")
        clamped = min(self.limit, max(-self.limit, score))
        return round(clamped / self.step) * self.step

    def text(self, score: float) -> str:
        written = f"{self.value(score):.2f}"
        return "0.00" if written == "-0.00" else written


class ScoreScale(BaseModel):
    """What a score means: a z-score (the paper), or a place among the labelled rewards (`quantile`).

    `knots` are (raw reward, score) pairs, rising in both, for the quantile scale only.
    """

    kind: Literal["zscore", "quantile"] = "zscore"
    normaliser: Normaliser
    limit: Annotated[Finite, Field(gt=0)] = 5.0
    knots: list[tuple[float, float]] = []

    @model_validator(mode="after")
    def _knots_fit_kind(self) -> ScoreScale:
        if self.kind == "quantile" and len(self.knots) < 2:
            raise ValueError("a quantile scale needs at least two knots")
        return self

    def score(self, reward: float) -> float:
        """Score of a raw reward."""
        if self.kind == "zscore":
            return self.normaliser.z(reward)
        return _interpolate(reward, [k[0] for k in self.knots], [k[1] for k in self.knots])

    def reward(self, score: float) -> float:
        """Raw reward that a score asks for."""
        if self.kind == "zscore":
            return self.normaliser.raw(score)
        return _interpolate(score, [k[1] for k in self.knots], [k[0] for k in self.knots])

    @classmethod
    def fit(
        cls,
        kind: Literal["zscore", "quantile"],
        rewards: Sequence[float],
        normaliser: Normaliser,
        limit: float = 5.0,
        max_knots: int = 1001,
    ) -> ScoreScale:
        """Quantile: ties share their mid-rank, linear between, the extremes land on -limit and +limit."""
        if kind == "zscore":
            return cls(kind=kind, normaliser=normaliser, limit=limit)
        ordered = sorted(rewards)
        values: list[float] = []
        ranks: list[float] = []
        start = 0
        while start < len(ordered):
            end = bisect.bisect_right(ordered, ordered[start])
            values.append(ordered[start])
            ranks.append((start + end - 1) / 2)
            start = end
        low, high = ranks[0], ranks[-1]
        knots = [
            (value, (2 * (rank - low) / (high - low) - 1) * limit) for value, rank in zip(values, ranks, strict=True)
        ]
        if len(knots) > max_knots:
            keep = sorted({round(i * (len(knots) - 1) / (max_knots - 1)) for i in range(max_knots)})
            knots = [knots[i] for i in keep]
        return cls(kind=kind, normaliser=normaliser, limit=limit, knots=knots)


def _interpolate(x: float, xs: list[float], ys: list[float]) -> float:
    if x <= xs[0]:
        return ys[0]
    if x >= xs[-1]:
        return ys[-1]
    i = bisect.bisect_right(xs, x)
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])


def score_prompt(score_text: str) -> str:
    """The reward prompt as it stands after the assistant marker: ` <rm_score> 5.00`."""
    return f" {SCORE_MARKER} {score_text}"


# Jinja. `rm_score=""` asks for no reward prompt at all. Comments mark what `without_score` takes out again.
_SCORE_TEXT = "'" + SCORE_MARKER + " ' ~ '%.2f' | format(rm_score | float)"
_SCORE_OPEN, _SCORE_CLOSE = "{#- rm_score -#}", "{#- /rm_score -#}"


def _score_default(default_score: str) -> str:
    return (
        _SCORE_OPEN
        + "{% if rm_score is not defined or rm_score is none %}{% set rm_score = '"
        + default_score
        + "' %}{% endif %}"
        + _SCORE_CLOSE
    )


def plain_chat_template(default_score: str | None) -> str:
    """A Jinja chat template equal to the plain template, token for token.

    With a default score, the reward prompt opens the last assistant turn; callers change it with
    `apply_chat_template(..., rm_score=2.5)`.
    """
    before, score = "", "''"
    if default_score is not None:
        before = _score_default(default_score)
        score = f"((' ' ~ {_SCORE_TEXT}) if rm_score != '' else '')"
    return (
        before + "{{ bos_token if bos_token else '' }}"
        "{% for m in messages %}"
        "{% if m.role == 'system' %}{{ 'System: ' + m.content + ' ' }}"
        "{% elif m.role == 'user' %}{{ ('' if loop.first or messages[loop.index0-1].role == 'system' else ' ')"
        " + 'User: ' + m.content + ' Assistant:' }}"
        "{% else %}{{ (" + score + " if loop.last else '') + ' ' + m.content + eos_token }}{% endif %}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ " + score + " }}{% endif %}"
    )


def chat_template_with_score(template: str, default_score: str) -> str:
    """A model's own chat template with the reward prompt opening the answer that is asked for."""
    ending = "{% if add_generation_prompt and rm_score != '' %}{{ " + _SCORE_TEXT + " }}{% endif %}"
    return _score_default(default_score) + without_score(template) + _SCORE_OPEN + ending + _SCORE_CLOSE


def without_score(template: str) -> str:
    """Undo `chat_template_with_score`."""
    return re.sub(re.escape(_SCORE_OPEN) + ".*?" + re.escape(_SCORE_CLOSE), "", template, flags=re.DOTALL)
