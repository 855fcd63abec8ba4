"""The config of any run. The server validates with it, launch forms come from its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag, TypeAdapter

from steerboard_contracts.methods import needed_method
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_contracts.run_kinds.answer import AnswerConfig
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_contracts.run_kinds.benchmark import BenchmarkConfig
from steerboard_contracts.run_kinds.check_rows import CheckRowsConfig
from steerboard_contracts.run_kinds.combine import CombineConfig
from steerboard_contracts.run_kinds.compare import CompareConfig
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.run_kinds.gguf import GgufConfig
from steerboard_contracts.run_kinds.grade import GradeConfig
from steerboard_contracts.run_kinds.history import HistoryConfig
from steerboard_contracts.run_kinds.judge import JudgeConfig
from steerboard_contracts.run_kinds.mix import MixConfig
from steerboard_contracts.run_kinds.push import PushConfig
from steerboard_contracts.run_kinds.reward import RewardConfig
from steerboard_contracts.run_kinds.score import ScoreConfig
from steerboard_contracts.run_kinds.select import SelectConfig
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
    | Annotated[CheckRowsConfig, Tag("check_rows")]
    | Annotated[PushConfig, Tag("push")]
    | Annotated[GgufConfig, Tag("gguf")]
    | Annotated[HistoryConfig, Tag("history")],
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
