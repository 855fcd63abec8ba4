"""The verdict of a gate over an evaluation, with each rule."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import BaseModel


class GateRuleResult(BaseModel):
    """One rule with what it was checked against. `outcome` invalid: it cannot be decided; `why` names what is
    missing."""

    rule: dict[str, object]
    text: str
    value: float | bool | None
    bound: float | bool | None
    outcome: Literal["pass", "fail", "invalid"]
    why: str


class GateVerdict(BaseModel):
    evaluation: str
    evaluation_id: UUID
    verdict: Literal["pass", "fail", "invalid"]
    rules: list[GateRuleResult]
    why: list[str]
