"""What a report comes to: the winner, by how much, by which source, and with which reservations."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.comparison import By

ReservationCode = Literal[
    "not_significant",
    "repeated",
    "empty",
    "cut",
    "few_items",
    "campaign_open",
    "unfinished",
    "annotators_disagree",
    "sources_disagree",
    "not_confirmed",
    "length",
    "circular",
    "reward_hacking",
    "contamination",
    "contamination_unchecked",
    "held_out_changed",
]


class Reservation(BaseModel):
    """A reason to doubt the headline. `value`: the figure that it is about, null where there is none."""

    code: ReservationCode
    text: str
    value: float | None = None


class Margin(BaseModel):
    """The entrant in front against `over`, the rival that it is least clearly ahead of."""

    over: str
    win_rate: Estimate
    difference: Estimate | None = None
    p_holm: float | None = None


class WinnerStatement(BaseModel):
    """Who is in front, in a sentence (`text`).

    `winner` is as in `Comparison`. `leader` has the highest mean, winner or not, and is null where several share it or
    nothing is compared. `tied`: the rivals that the leader does not differ from significantly.
    """

    text: str
    winner: str | None = None
    leader: str | None = None
    tied: list[str] = []
    margin: Margin | None = None
    items: int = 0


class SourceHeadline(WinnerStatement):
    """What one source comes to."""

    by: By
    source: str


class Headline(WinnerStatement):
    """What the source that answers comes to: people, otherwise a jury, a valid judge or a reward model, in this order.

    `by` and `source` are null while no one has assessed the answers.
    """

    by: By | None = None
    source: str | None = None
    over: list[str] = Field([], description="The rivals of the leader, in the order of the entrants.")
    reservations: list[Reservation] = []
    sources: list[SourceHeadline] = Field([], description="Every source's own, in the order of the report.")
