"""What runs hand to the domains above them: evaluations, whose answers and scores some runs make, and notices."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.hooks import Hook
from steerboard.runs.tables import Run
from steerboard_contracts.online.judge_reward import JudgeReward, PinnedJudge
from steerboard_contracts.stage.outputs import ResponseRewardsOutput

# Runs that the transaction has ended. Called at its very end, behind the lock of the event stream.
ended: Hook[[Session, Collection[Run]], None] = Hook("runs.ended")


@dataclass(frozen=True)
class News:
    """Something else than a run's end that notices may tell of.

    `about`: what the event's data has besides that of `run`; without a run with `id`, `name`, `state` and `reason`.
    `path`: of its page, below the project's. `once`: names what is reported a single time, however often it happens.
    """

    project_id: uuid.UUID
    event: str
    about: dict[str, Any]
    run: Run | None = None
    path: str = ""
    once: str | None = None


# Called as `ended` is.
news: Hook[[Session, Sequence[News]], None] = Hook("runs.news")

# A run of this evaluation has ended, or resumed.
evaluation_run_moved: Hook[[Session, uuid.UUID], None] = Hook("runs.evaluation_run_moved")

# An entrant's answers in a file; returns how many there are.
store_responses: Hook[[Session, Run, Path], int] = Hook("runs.store_responses")

# A reward model's scores of responses in a file.
store_response_rewards: Hook[[Session, Run, ResponseRewardsOutput, Path], None] = Hook("runs.store_response_rewards")

# A preference model's verdicts in a file; returns how many pairs they are of.
store_verdicts: Hook[[Session, Run, Path], int] = Hook("runs.store_verdicts")

# Whether the second run could take over the answers of the first, which was equal.
copy_responses: Hook[[Session, Run, Run], bool] = Hook("runs.copy_responses")

# The inputs of an evaluate run are there: give it the runs that make and score the answers, as its children. Returns
# the evaluation's id.
begin_evaluation: Hook[[Session, Run], uuid.UUID] = Hook("runs.begin_evaluation")

# All of those have succeeded: the report, and the few figures of the run's summary.
finish_evaluation: Hook[[Session, Run], tuple[dict[str, Any], dict[str, Any]]] = Hook("runs.finish_evaluation")

# Whether the evaluation that a finished run of the kind started is still there.
evaluation_is_there: Hook[[Session, Run], bool] = Hook("runs.evaluation_is_there")

# The evaluations that hold answers, rewards or verdicts of these runs, or were made for them: run and name.
evaluations_with: Hook[[Session, Sequence[uuid.UUID]], list[tuple[uuid.UUID, str]]] = Hook("runs.evaluations_with")

# The judge that a rule names, pinned. Raises `BadInput` for one whose word may not be a reward.
reward_judge: Hook[[Session, Project, JudgeReward], PinnedJudge] = Hook("runs.reward_judge")
