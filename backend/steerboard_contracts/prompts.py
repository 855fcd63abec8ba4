"""What rewards mean: normalised over a labelled dataset, and as the score that a policy is asked for."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from steerboard_contracts.errors import BadInput
from steerboard_contracts.samples import Finite

# The paper's template as a chat template. The exported model answers the same through it (CONTRACTS.md);
# a policy that takes scores gets the reward prompt after the last marker, see `plain_chat_template`.
TemplateName = Literal["plain", "chat"]


class RewardPart(BaseModel):
    """One of several rewards that were added up: weight * (R - mean) / sd, by its own labelled dataset of `n` rows."""

    reward_source: str
    reward_model_hash: str | None = None
    weight: Finite
    mean: Finite
    sd: Annotated[Finite, Field(gt=0)]
    n: Annotated[int, Field(ge=2)]

    def z(self, reward: float) -> float:
        return (reward - self.mean) / self.sd


class Normaliser(BaseModel):
    """z = (R - mean) / sd over one whole labelled dataset, computed in float64 (population sd).

    `parts`: where R is a sum of several rewards, how each was normalised and weighted, so that other answers can be
    given the same sum.
    """

    mean: Finite
    sd: Annotated[Finite, Field(gt=0)]
    n: Annotated[int, Field(ge=2)]
    reward_source: str
    reward_model_hash: str | None = None
    # Left out of what is stored where there are none: most rewards are of one model.
    parts: list[RewardPart] = Field(default=[], exclude_if=lambda parts: not parts)

    def z(self, reward: float) -> float:
        return (reward - self.mean) / self.sd

    def raw(self, z: float) -> float:
        return z * self.sd + self.mean

    def part(self, weight: float) -> RewardPart:
        """This reward as one of several that are added up."""
        named = {"reward_source": self.reward_source, "reward_model_hash": self.reward_model_hash}
        return RewardPart(**named, weight=weight, mean=self.mean, sd=self.sd, n=self.n)

    def of_model(self, reward_model_hash: str) -> Normaliser | None:
        """What brings that model's own rewards to z units: this, or what was used for its part of the sum."""
        if self.reward_model_hash == reward_model_hash:
            return self
        part = next((part for part in self.parts if part.reward_model_hash == reward_model_hash), None)
        return None if part is None else Normaliser.model_validate(part.model_dump(exclude={"weight"}))

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


ScaleKind = Literal["zscore", "quantile", "linear"]
# A linear scale reaches from this share of the labelled rewards to the same share from above.
_LINEAR_TAIL = 0.01


class ScoreScale(BaseModel):
    """What a score means: a z-score (the paper), a place among the labelled rewards (`quantile`), or the reward itself,
    stretched over the range of scores (`linear`).

    `knots` are (raw reward, score) pairs, rising in both; a z-score needs none.
    """

    kind: ScaleKind = "zscore"
    normaliser: Normaliser
    limit: Annotated[Finite, Field(gt=0)] = 5.0
    knots: list[tuple[float, float]] = []

    @model_validator(mode="after")
    def _knots_fit_kind(self) -> ScoreScale:
        if self.kind != "zscore" and len(self.knots) < 2:
            raise ValueError(f"a {self.kind} scale needs at least two knots")
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
        kind: ScaleKind,
        rewards: Sequence[float],
        normaliser: Normaliser,
        limit: float = 5.0,
        max_knots: int = 1001,
    ) -> ScoreScale:
        """Quantile: ties share their mid-rank, linear between, the extremes land on -limit and +limit. Linear: the 1st
        percentile lands on -limit, the 99th on +limit, so that a few extremes do not squeeze all others together."""
        if kind == "zscore":
            return cls(kind=kind, normaliser=normaliser, limit=limit)
        ordered = sorted(rewards)
        if kind == "linear":
            tail = int(_LINEAR_TAIL * (len(ordered) - 1))
            low, high = ordered[tail], ordered[-1 - tail]
            ends = (low, high) if low < high else (ordered[0], ordered[-1])
            return cls(kind=kind, normaliser=normaliser, limit=limit, knots=[(ends[0], -limit), (ends[1], limit)])
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
