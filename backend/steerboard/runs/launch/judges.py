"""Which judges reward a run's answers: pinned when the run is made, as endpoints are."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.runs import hooks
from steerboard_contracts.fields import Config
from steerboard_contracts.online.judge_reward import JudgeReward
from steerboard_contracts.online.rewarded import RewardedOnlineConfig

AnyConfig = TypeVar("AnyConfig", bound=Config)


def with_judges(session: Session, project: Project, config: AnyConfig) -> AnyConfig:
    """The config with its judges as they are now, whatever was given. Raises `BadInput` for one whose word may not be
    a reward."""
    if not isinstance(config, RewardedOnlineConfig) or not config.judges:
        return config
    rules = [
        rule.model_copy(update={"pinned": hooks.reward_judge(session, project, rule)})
        if isinstance(rule, JudgeReward)
        else rule
        for rule in config.rules
    ]
    return config.model_copy(update={"rules": rules})
