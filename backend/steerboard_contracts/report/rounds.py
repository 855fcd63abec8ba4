"""What the rounds of a pipeline found: for each, what was selected, how its policy answers, and what it cost."""

from __future__ import annotations

import uuid
from typing import Literal

from pydantic import BaseModel

from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.selection import DroppedGroups

RoundState = Literal["queued", "running", "succeeded", "failed", "cancelled", "skipped", "paused"]


class RoundSelection(BaseModel):
    """What was kept of the round's `groups` of sampled answers. `reward`: the reward model that chose, all of them
    where there are several, or the preference model. `mean` and `best`: of all answers and of the best of each group,
    the raw rewards of a single reward model, else the scores that they were selected by; `units`: theirs.
    `characters`: of a sampled answer, over the groups that have as many answers as any; null where there are none."""

    groups: int
    kept_groups: int
    rows: int
    dropped: DroppedGroups
    reward: str
    units: Literal["raw", "z", "win_rate"]
    mean: Estimate
    best: Estimate
    characters: float | None


class RoundAnswers(BaseModel):
    """How the round's policy answers held-out prompts, as the evaluation of stage `stage` measured it. `judge`: the
    reward model whose mean reward, in `units`, is `reward`; `independent`: no round learned from it. `tokens`: of an
    answer. Win rates count prompts on which its answer has the higher reward, ties 1/2; null where the other policy is
    not in the evaluation."""

    stage: str
    judge: str
    independent: bool
    units: Literal["z", "raw"]
    reward: Estimate
    tokens: Estimate | None
    against_previous: Estimate | None
    against_start: Estimate | None


class RoundPolicy(BaseModel):
    """The model that the round made. `in_production`: it is the project's policy in production now; `former`: the model
    that it replaced there, which a roll back puts back."""

    id: uuid.UUID
    name: str
    in_production: bool
    former: str | None = None


class RoundCost(BaseModel):
    """`device_seconds` of the round's stages, its check among them; of a reused stage those of the time it ran. Tokens
    that were sampled, and that training read; null before such a stage has ended."""

    device_seconds: float
    sampled_tokens: int | None
    trained_tokens: int | None


class RoundRow(BaseModel):
    """`stage`: the one of `stages` that makes the policy. `reason`: why it was not run. `decision`: of the stop rule,
    after it. `kept`: it is not behind a fall. What is null was not measured, or is not there yet."""

    number: int
    state: RoundState
    reason: str | None = None
    stage: str
    stages: list[str]
    policy: RoundPolicy | None = None
    selection: RoundSelection | None = None
    answers: RoundAnswers | None = None
    decision: RoundDecision | None = None
    kept: bool | None = None
    cost: RoundCost


class RoundsReport(BaseModel):
    """`start`: what the first round began with. `stopped_after`: the round whose check ended the rounds, `result`: the
    last round that was kept, 0 being the start; null while rounds are under way. `verdict`: the outcome in a
    sentence."""

    pipeline: str
    start: str
    judge: str | None
    rounds: list[RoundRow]
    stopped_after: int | None = None
    result: int | None = None
    verdict: str
    notes: list[str] = []
