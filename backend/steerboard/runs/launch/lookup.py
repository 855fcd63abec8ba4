"""What the inputs of runs and recipes can name: datasets, models and folders. Checks ask; they never query."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Protocol

from steerboard.registry.base_sources import PinnedSource
from steerboard_contracts.online.judge_reward import JudgeReward, PinnedJudge
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.specs.run_kind import RunKindSpec


@dataclass(frozen=True)
class KnownDataset:
    """`fields`: those of its rows, where they are known."""

    id: uuid.UUID
    name: str
    kind: str
    rows: int
    held_out_rows: int = 0
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True)
class KnownModel:
    """`adapter`: not merged into its base. `window`: tokens that it reads, None where its folder does not say."""

    id: uuid.UUID
    name: str
    role: str
    adapter: bool = False
    window: int | None = None


class Catalogue(Protocol):
    """Names of one project. `..._names` are for suggestions."""

    def dataset(self, ref: str) -> KnownDataset | None: ...

    def model(self, ref: str) -> KnownModel | None: ...

    def pinned(self, source: str) -> PinnedSource:
        """A base model's source, with what a folder holds now (`registry.base_sources.pinned`). Raises `BadInput`."""
        ...

    def rows_fault(self, dataset: KnownDataset, kind: RunKindSpec, slot: str, config: RunConfig | None) -> str | None:
        """`datasets.conversions.launch.rows_fault`"""
        ...

    def tokenizer_fault(self, model: KnownModel, other: KnownModel) -> str | None:
        """`registry.tokenizers.tokenizer_fault`"""
        ...

    def dataset_names(self) -> list[str]: ...

    def model_names(self) -> list[str]: ...

    def endpoint_names(self) -> list[str]: ...

    def has_endpoint(self, ref: str) -> bool: ...

    def address_fault(self, url: str) -> str | None:
        """Why this server may not be called, and what helps; None also where its name has no address now."""
        ...

    def reward_judge(self, rule: JudgeReward) -> PinnedJudge:
        """The judge that rewards a run's answers. Raises `BadInput` for one whose word may not be a reward."""
        ...
