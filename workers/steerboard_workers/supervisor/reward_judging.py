"""Judges that reward the answers of a training: asked here, since a stage has neither the database nor their keys."""

from __future__ import annotations

from contextlib import ExitStack

from steerboard.evaluation.reward_judges.asking import RewardJudges
from steerboard.evaluation.reward_judges.server import serving
from steerboard.platform.settings import Settings
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_contracts.stage.spec import StageSpec


def with_judges(settings: Settings, claim: Claim, run: Run, spec: StageSpec, holds: ExitStack) -> StageSpec:
    """`spec` with the socket at which the stage asks its judges, until `holds` is closed; as it is without any judge.

    Raises `BadInput` (`unknown_endpoint`) and `EndpointChanged`."""
    config = spec.config
    if not isinstance(config, RewardedOnlineConfig) or not config.judges:
        return spec
    judges = RewardJudges(settings, claim, run.project_id, config.judges, config.judge_budget)
    path = holds.enter_context(serving(judges))
    access = spec.reward_access.model_copy(update={"judges": path})
    return spec.model_copy(update={"reward_access": access})
