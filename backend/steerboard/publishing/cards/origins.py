"""The origin of a dataset, in a few words."""

from __future__ import annotations

from steerboard.datasets.hub import HubName
from steerboard.datasets.tables import Dataset
from steerboard.publishing.cards.markdown import code
from steerboard_contracts.errors import BadInput


def hub_dataset(dataset: Dataset) -> str | None:
    """The repository's name, for one that was imported from the hub."""
    hub = dataset.origin.get("hub")
    try:
        return HubName.parse(hub).repo if isinstance(hub, str) else None
    except BadInput:
        return None


def origin_words(dataset: Dataset) -> str:
    origin = dataset.origin
    if isinstance(origin.get("hub"), str):
        return f"hub {code(origin['hub'])}"
    if origin.get("run"):
        return f"a {origin['run']} run"
    if origin.get("file"):
        return f"file {code(str(origin['file']))}"
    return str(origin.get("type") or "this project")
