"""What a tournament among answers finds: how a preference model compared them."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.report.estimate import Estimate


class Tournament(BaseModel):
    """How a preference model judged the answers. `comparisons`: of different texts, each asked in both orders; `ties`:
    those that neither answer won; `flips`: those in which another answer won when the two were exchanged, and
    `flip_rate` their share, the mean over groups."""

    judge: str
    opponents: int
    comparisons: int
    ties: int
    flips: int
    flip_rate: Estimate
