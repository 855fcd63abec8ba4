"""`stage.json`: all that a stage gets."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny

from steerboard_contracts.fields import Config
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.placement import RoleNodes
from steerboard_contracts.run_kinds import any_config, run_of
from steerboard_contracts.stage.inputs import StageInput

STAGE_FILE = "stage.json"
# The input of a `base` stage whose model was uploaded.
UPLOADED = "uploaded"


class Shard(BaseModel):
    """Rows whose place in the input, modulo `count`, equals `index`."""

    index: int = 0
    count: int = 1


class EngineProcess(BaseModel):
    """How a stage starts a process that has vLLM or llama.cpp, where it does not run by that Python itself: with its
    own environment and these `variables`."""

    model_config = ConfigDict(extra="forbid")

    python: str
    variables: dict[str, str]


class StageSpec(BaseModel):
    """stage.json. Inputs by name: `model`, `data`, `reward`, `parts.0`, `entrants.0`, `rewards.0`, ...; paths may
    be relative to the stage directory. `folders`: what else of the machine a `base` or `academic` stage may read.
    `caches`: by name of a frozen model, a folder for its log-probs that other runs share. `day`: on which the run was
    launched, which chat templates get as today's."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    attempt: int = 1
    day: date | None = None
    name: str
    config: Annotated[SerializeAsAny[Config], BeforeValidator(any_config)]
    inputs: dict[str, StageInput] = {}
    shard: Shard = Shard()
    threads: int | None = None
    disk_reserve_mb: int | None = None  # what checkpoints leave free of their disk (`contracts.files.disk`)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    folders: LocalFolders = LocalFolders()
    caches: dict[str, str] = {}
    reward_access: RewardAccess = RewardAccess()
    vllm: EngineProcess | None = None
    llama_cpp: EngineProcess | None = None
    roles: RoleNodes | None = None

    @property
    def kind(self) -> str:
        """The run kind."""
        return run_of(self.config)
