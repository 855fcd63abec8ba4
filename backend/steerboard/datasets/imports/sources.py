"""The files of an import as sources to read; those of a hub dataset are fetched when they are first needed."""

from __future__ import annotations

from functools import partial
from typing import BinaryIO

from steerboard.datasets.hub import HubFiles, HubName
from steerboard.datasets.imports.files import ImportFiles, Meter
from steerboard.datasets.imports.tables import Import
from steerboard_files.records import Source


def import_sources_of(
    files: ImportFiles, row: Import, meter: Meter | None = None, token: str | None = None
) -> list[Source]:
    """The sources in order. Opening raises `ImportFileGone` and errors of the hub. `token`: the project's one."""
    listed = [(file["label"], file["size"]) for file in row.files]
    hub = HubFiles(HubName.parse(row.hub), listed, token=token) if row.hub else None
    return [
        Source(file["label"], partial(_open, files, row, place, file["label"], hub, meter))
        for place, file in enumerate(row.files)
    ]


def _open(
    files: ImportFiles, row: Import, place: int, label: str, hub: HubFiles | None, meter: Meter | None
) -> BinaryIO:
    name = str(place)
    if hub is not None and not files.exists(row.id, name):
        with hub.fetch(label) as content:
            files.put(row.id, name, content)
    return files.open(row.id, name, meter)
