"""What the arena API takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from steerboard.arena.outcomes import FEWEST_SIDES, MOST_SIDES, Letter, Verdict
from steerboard.playground.schemas import ColumnIn
from steerboard_contracts.turns import TurnText

ArenaState = Literal["open", "closed"]
SideState = Literal["queued", "running", "succeeded", "failed"]
Category = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
PromptText = Annotated[TurnText, Field(max_length=50_000)]
EntrantName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class ArenaEntrantIn(ColumnIn):
    """A column of the playground; `name`: what it is called once a vote is given, by default model and score."""

    name: EntrantName | None = None


class ArenaIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    entrants: Annotated[list[ArenaEntrantIn], Field(min_length=2, max_length=16)]
    sides: Annotated[
        int, Field(ge=FEWEST_SIDES, le=MOST_SIDES, description="How many of the entrants answer side by side.")
    ] = 2
    categories: Annotated[
        list[Category], Field(max_length=50, description="Categories that a battle may be filed under.")
    ] = []

    @model_validator(mode="after")
    def _possible(self) -> ArenaIn:
        if self.sides > len(self.entrants):
            raise ValueError(f"{self.sides} sides need at least as many entrants")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("two categories are the same")
        return self


class ArenaOut(BaseModel):
    """`votes`: those that count; `repeats`: of the same person on the same entrants for the same prompt, which do
    not."""

    id: uuid.UUID
    name: str
    entrants: list[str]
    sides: int
    categories: list[str]
    state: ArenaState
    votes: int
    repeats: int
    created_by: str
    created_at: dt.datetime


class BattleIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prompt: PromptText
    category: Annotated[Category | None, Field(description="One of the arena's.")] = None


class TurnIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prompt: PromptText


class Side(BaseModel):
    """An answer without anything that hints at who gave it."""

    state: SideState
    text: str
    cut: bool = Field(description="A limit ended it.")


class TurnOut(BaseModel):
    """`sides`: the answers A, B and so on."""

    prompt: str
    sides: list[Side]


class SideChange(BaseModel):
    """Data of an `answer` event of a battle's stream. The text is what was known up to `at`, then `text`."""

    side: Letter
    state: SideState
    cut: bool
    at: int = Field(description="Offset in UTF-16 code units, as JavaScript counts characters.")
    text: str


class Revealed(BaseModel):
    """What the vote reveals: who answered, as A, B and so on."""

    verdict: Verdict
    turns: int = Field(description="How many turns, from the first, the vote is about.")
    counts: bool = Field(description="False for the same prompt asked of the same entrants again.")
    names: list[str]


class BattleOut(BaseModel):
    """`waits_for`: why no one answers, where that concerns all. `vote`, with the names, is null before the vote."""

    id: uuid.UUID
    arena: uuid.UUID
    category: str | None
    turns: list[TurnOut]
    waits_for: str | None
    vote: Revealed | None
    created_at: dt.datetime


class VoteIn(BaseModel):
    """`submission`: the voter's own id of this vote; sent again, it changes nothing. `verdict`: the side with the best
    answer, or that all are as good or bad. `turns`: how many the voter has seen, from the first; the vote is about
    these, also where another one was asked meanwhile. Null: all."""

    model_config = ConfigDict(extra="forbid")

    submission: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    verdict: Verdict
    turns: Annotated[int | None, Field(ge=1)] = None


class Rated(BaseModel):
    """A rating on the scale 400 to the base 10, with a mean of 1000; `low` and `high` are the bootstrap 95% interval.
    `n` counts votes, `wins` those for this entrant, `losses` those for another one. `elo`: null where no time orders
    the votes."""

    model: str
    rating: float
    low: float | None
    high: float | None
    elo: float | None
    n: int
    wins: int
    ties: int
    losses: int


class StyleControlled(BaseModel):
    """Ratings with the answers' length and Markdown as further regressors; `coefficients` in log-odds a standard
    deviation."""

    n: int
    coefficients: dict[str, float] = {}
    models: list[Rated]
    why: str | None = None


class ArenaLeaderboard(BaseModel):
    """The ratings that `steerboard figures` computes from the exported battles. `why`: there are no ratings; `unrated`:
    entrants without a chain of wins to and from the others."""

    category: str | None
    n: int
    models: list[Rated]
    unrated: list[str] = []
    why: str | None = None
    separability: float | None = None
    matrix: dict[str, dict[str, float]]
    style_controlled: StyleControlled | None = None
    by_category: dict[str, int] = Field(description="Votes that count, by category.")


class PairsIn(BaseModel):
    """`split`: of the rows, as the project splits prompts, or all for training."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(description="Null: the arena's name, `preferences` and a number.")] = None
    split: Literal["by_prompt", "train"] = "by_prompt"
