"""A project's datasets and models, held in memory."""

from __future__ import annotations

import uuid

from steerboard.recipes.catalogue import KnownDataset, KnownModel


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

    def dataset(self, ref: str) -> KnownDataset | None:
        return self.datasets.get(ref)

    def model(self, ref: str) -> KnownModel | None:
        return self.models.get(ref)

    def dataset_names(self) -> list[str]:
        return list(self.datasets)

    def model_names(self) -> list[str]:
        return list(self.models)
