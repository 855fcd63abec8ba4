"""The models that the list of workers shows for this one.

They are those that memory would hold without any battles of an arena. What it really holds is not for others to read:
which model a battle loads, when, and which one makes room for it would tell a voter who answers on which side.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class _Listed:
    project_id: uuid.UUID
    name: str
    size: int


class ListedModels:
    """Models that were used in the open, the least recently used first. Not for several threads at once."""

    def __init__(self) -> None:
        self._models: OrderedDict[uuid.UUID, _Listed] = OrderedDict()

    def rows(self) -> list[dict[str, str]]:
        """The rows of `workers.holds`."""
        return [{"project_id": str(model.project_id), "name": model.name} for model in self._models.values()]

    def used(self, model_id: uuid.UUID, project_id: uuid.UUID, name: str, size: int, limit: int | None) -> None:
        """A model is in use; those used the longest ago leave where all together have more than `limit` bytes."""
        self._models.pop(model_id, None)
        while limit is not None and self._models and size + self._bytes() > limit:
            self._models.popitem(last=False)
        self._models[model_id] = _Listed(project_id, name, size)

    def remove(self, model_id: uuid.UUID) -> None:
        self._models.pop(model_id, None)

    def clear(self) -> None:
        self._models.clear()

    def _bytes(self) -> int:
        return sum(model.size for model in self._models.values())
