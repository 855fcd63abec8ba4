"""The errors by which the work of the process of imports ends where it takes too much, or the process dies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from steerboard.datasets.errors import (
    CleaningInterrupted,
    CleaningOutOfMemory,
    CleaningTimedOut,
    ImportInterrupted,
    ImportTimedOut,
)
from steerboard_contracts.errors import SteerboardError
from steerboard_files.errors import ImportOutOfMemory, TooMuchWork

Work = Literal["import", "cleaning"]


class Faults(NamedTuple):
    out_of_memory: Callable[[int], TooMuchWork]
    """With the limit in MB."""
    timed_out: Callable[[float], TooMuchWork]
    """With the limit in seconds."""
    interrupted: Callable[[], SteerboardError]


def _import_out_of_memory(megabytes: int) -> ImportOutOfMemory:
    return ImportOutOfMemory(
        f"the file takes more than {megabytes:,} MB of memory to read",
        hint="Import it in several parts; write a JSON array as JSON lines (jq -c '.[]'). Or raise"
        " STEERBOARD_IMPORT_MEMORY_MB.",
    )


def _import_timed_out(seconds: float) -> ImportTimedOut:
    return ImportTimedOut(
        f"the file was not read and stored within {seconds:g} s",
        hint="Import it in several parts, or raise STEERBOARD_IMPORT_SECONDS.",
    )


def _import_interrupted() -> ImportInterrupted:
    return ImportInterrupted(
        "the process that read the file ended prematurely",
        hint="The server may have run out of memory; its imports.log may show why.",
    )


def _cleaning_out_of_memory(megabytes: int) -> CleaningOutOfMemory:
    return CleaningOutOfMemory(
        f"the dataset takes more than {megabytes:,} MB of memory to clean",
        hint="Disable the rule near_duplicate, which takes most of it, or raise STEERBOARD_IMPORT_MEMORY_MB.",
    )


def _cleaning_timed_out(seconds: float) -> CleaningTimedOut:
    return CleaningTimedOut(
        f"the dataset was not cleaned within {seconds:g} s",
        hint="Disable the rule near_duplicate, which takes most of it, or raise STEERBOARD_IMPORT_SECONDS.",
    )


def _cleaning_interrupted() -> CleaningInterrupted:
    return CleaningInterrupted(
        "the process that cleaned the dataset ended prematurely",
        hint="The server may have run out of memory; its imports.log may show why.",
    )


FAULTS: Mapping[Work, Faults] = {
    "import": Faults(_import_out_of_memory, _import_timed_out, _import_interrupted),
    "cleaning": Faults(_cleaning_out_of_memory, _cleaning_timed_out, _cleaning_interrupted),
}
