"""New datasets from rows that are made one by one, such as the pairs of people's votes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import orjson
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.service import register_rows
from steerboard.datasets.tables import Dataset
from steerboard.platform.names import names_like, next_name
from steerboard.platform.storage import scratch
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.errors import EmptySelection
from steerboard_contracts.samples import SampleKind


def register_pairs(
    session: Session,
    project: Project,
    base: str,
    rows: Iterable[dict[str, Any]],
    *,
    origin: Callable[[], dict[str, Any]],
    left_out: Mapping[str, int],
    split: Literal["by_prompt", "train"],
    hint: str,
) -> Dataset:
    """A preference dataset, like `register_made`. Raises `EmptySelection`, with the `hint`, where there is no row."""
    return register_made(
        session,
        project,
        base,
        rows,
        kind="preferences",
        origin=origin,
        left_out=left_out,
        split=split,
        nothing=("no answer was preferred to another", hint),
    )


def register_made(
    session: Session,
    project: Project,
    base: str,
    rows: Iterable[dict[str, Any]],
    *,
    kind: SampleKind,
    origin: Callable[[], dict[str, Any]],
    left_out: Mapping[str, int],
    split: Literal["by_prompt", "train"],
    nothing: tuple[str, str],
) -> Dataset:
    """Named BASE-1, BASE-2, ...: one above the highest that there is; the caller lets one call in at a time.

    `origin`, where they are from, is asked when all `rows` are written, and `left_out`, by reason, is read then.
    `split`: as the project splits prompts, or all for training. Raises `EmptySelection` with `nothing`, its message and
    hint, where there is no row.
    """
    name = next_name(base, names_like(session, Dataset.name, f"{base}-", Dataset.project_id == project.id))
    written = 0
    with scratch.folder(kind) as folder:
        path = folder / f"{kind}.jsonl"
        with create_file(path, "the rows") as file:
            for row in rows:
                file.write(orjson.dumps(row) + b"\n")
                written += 1
        if written == 0:
            message, hint = nothing
            raise EmptySelection(message + (f"; left out: {dict(left_out)}" if left_out else ""), hint=hint)
        return register_rows(
            session,
            project,
            name=name,
            kind=kind,
            path=path,
            run_id=None,
            origin=origin() | {"split": split, "left_out": dict(left_out)},
            hold_out=split == "by_prompt",
        )
