"""The config of any run. The server validates with it, launch forms come from its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag, TypeAdapter

from steerboard_contracts.configs.academic import AcademicConfig
from steerboard_contracts.configs.answer import AnswerConfig
from steerboard_contracts.configs.base import BaseModelConfig
from steerboard_contracts.configs.benchmark import BenchmarkConfig
from steerboard_contracts.configs.check_rows import CheckRowsConfig
from steerboard_contracts.configs.combine import CombineConfig
from steerboard_contracts.configs.compare import CompareConfig
from steerboard_contracts.configs.evaluate import EvaluateConfig
from steerboard_contracts.configs.generate import GenerateConfig
from steerboard_contracts.configs.grade import GradeConfig
from steerboard_contracts.configs.judge import JudgeConfig
from steerboard_contracts.configs.mix import MixConfig
from steerboard_contracts.configs.reward import RewardConfig
from steerboard_contracts.configs.score import ScoreConfig
from steerboard_contracts.configs.select import SelectConfig
from steerboard_contracts.methods import needed_method
from steerboard_contracts.train_config import TrainConfig


def _kind_of(value: Any) -> str:
    run = value.get("run") if isinstance(value, dict) else getattr(value, "run", None)
    return str(run)


RunConfig = Annotated[
    Annotated[BaseModelConfig, Tag("base")]
    | Annotated[TrainConfig, Tag("train")]
    | Annotated[GenerateConfig, Tag("generate")]
    | Annotated[MixConfig, Tag("mix")]
    | Annotated[ScoreConfig, Tag("score")]
    | Annotated[GradeConfig, Tag("grade")]
    | Annotated[CombineConfig, Tag("combine")]
    | Annotated[SelectConfig, Tag("select")]
    | Annotated[EvaluateConfig, Tag("evaluate")]
    | Annotated[BenchmarkConfig, Tag("benchmark")]
    | Annotated[AcademicConfig, Tag("academic")]
    | Annotated[AnswerConfig, Tag("answer")]
    | Annotated[RewardConfig, Tag("reward")]
    | Annotated[JudgeConfig, Tag("judge")]
    | Annotated[CompareConfig, Tag("compare")]
    | Annotated[CheckRowsConfig, Tag("check_rows")],
    Discriminator(_kind_of),
]
RUN_CONFIG: TypeAdapter[RunConfig] = TypeAdapter(RunConfig)


def stored_config(config: Mapping[str, Any]) -> RunConfig:
    """The config of a run that was created, perhaps where another package was installed.

    Raises `BadInput` (`unknown_method`) where its method is not known here.
    """
    if "method" in config:
        needed_method(str(config.get("method")))
    return RUN_CONFIG.validate_python(config)
