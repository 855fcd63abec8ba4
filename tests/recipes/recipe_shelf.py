"""A project's datasets and models, held in memory."""

from __future__ import annotations

import uuid

from steerboard.registry.base_sources import PinnedSource
from steerboard.runs.launch.lookup import KnownDataset, KnownModel
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.judge_reward import JudgeReward, PinnedJudge
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.specs.run_kind import RunKindSpec


class Shelf:
    """A `Catalogue` of `hh` (preferences), `graded` (instructions), `questions` (prompts) and three models."""

    def __init__(self) -> None:
        kinds = {"hh": "preferences", "graded": "instructions", "questions": "prompts"}
        self.datasets = {
            name: KnownDataset(uuid.uuid4(), name, kind, 1000 * place)
            for place, (name, kind) in enumerate(kinds.items(), start=1)
        }
        roles = {"tiny": "base", "judge": "reward", "tuned": "sft"}
        self.models = {name: KnownModel(uuid.uuid4(), name, role) for name, role in roles.items()}
        self.folders = LocalFolders()

    def dataset(self, ref: str) -> KnownDataset | None:
        return self.datasets.get(ref)

    def model(self, ref: str) -> KnownModel | None:
        return self.models.get(ref)

    def pinned(self, source: str) -> PinnedSource:
        with self.folders.open(source) as folder:
            folder.check()
            return PinnedSource(folder.path, folder.fingerprint())

    def rows_fault(self, dataset: KnownDataset, kind: RunKindSpec, slot: str, config: RunConfig | None) -> str | None:
        return None

    def tokenizer_fault(self, model: KnownModel, other: KnownModel) -> str | None:
        return None

    def dataset_names(self) -> list[str]:
        return list(self.datasets)

    def model_names(self) -> list[str]:
        return list(self.models)

    def endpoint_names(self) -> list[str]:
        return ["gpt"]

    def has_endpoint(self, ref: str) -> bool:
        return ref in self.endpoint_names()

    def address_fault(self, url: str) -> str | None:
        return None

    def reward_judge(self, rule: JudgeReward) -> PinnedJudge:
        raise BadInput(f"there is no judge `{rule.judge}`", code="unknown_judge", hint="Add one.")
