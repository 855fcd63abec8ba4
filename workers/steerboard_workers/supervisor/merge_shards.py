"""Shards: each keeps its part in the artifact store, and the parent run puts the parts together in row order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore, Manifest
from steerboard.platform.storage.disk import create_file
from steerboard.registry import service as registry
from steerboard.registry.tables import Artifact
from steerboard.runs.errors import UnusableInput
from steerboard.runs.results.outputs import inside
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import DatasetOutput, RewardsOutput, StageOutput

_PART = "part.jsonl"


def keep_shard(session: Session, store: ArtifactStore, run: Run, outputs: list[StageOutput], folder: Path) -> None:
    """Put a shard's one output file into the artifact store, with the stage's description in `document`."""
    (output,) = outputs
    if not isinstance(output, DatasetOutput | RewardsOutput):
        raise UnusableInput(f"a {run.kind} run cannot be cut into shards: it made a {output.type}")
    part = folder / "part"
    part.mkdir(exist_ok=True)
    if not (part / _PART).exists():  # it is there when this transaction is tried again
        inside(folder, output.path).rename(part / _PART)
    manifest = registry.store_folder(session, store, part)
    session.add(
        RunOutput(
            run_id=run.id,
            name=output.name,
            type=output.type,
            artifact_hash=manifest.hash,
            document=output.model_dump(mode="json"),
        )
    )


def gather(sessions: sessionmaker[Session], store: ArtifactStore, shards: list[Run], folder: Path) -> Succeeded:
    """Fetch the parts of all shards and merge them by row into one output of the parent, as one stage would have made.

    Figures of the summaries are added up.
    """
    parts, outputs = [], []
    for shard in shards:
        with transaction(sessions) as session:
            kept = session.scalars(select(RunOutput).where(RunOutput.run_id == shard.id)).one()
            artifact = session.get_one(Artifact, kept.artifact_hash)
            destination = folder / f"shard-{shard.shard}"
            store.fetch(Manifest(hash=artifact.hash, size=artifact.size, files=artifact.manifest["files"]), destination)
        parts.append(destination / _PART)
        outputs.append(kept)
    (folder / "outputs").mkdir(exist_ok=True)
    path = folder / "outputs" / _PART
    rows = 0
    with create_file(path, "the output of a run") as file:
        for row in heapq.merge(*(_rows(part) for part in parts), key=lambda row: row["row"]):
            file.write(orjson.dumps(row) + b"\n")
            rows += 1
    document = {**(outputs[0].document or {}), "path": f"outputs/{_PART}", "rows": rows}
    kind = DatasetOutput if outputs[0].type == "dataset" else RewardsOutput
    return Succeeded(outputs=[kind.model_validate(document)], summary=_add_up(shards))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            yield orjson.loads(line)


def _add_up(shards: list[Run]) -> dict[str, Any]:
    total: dict[str, Any] = {"shards": len(shards)}
    for shard in shards:
        for name, value in (shard.summary or {}).items():
            if isinstance(value, int) and not isinstance(value, bool):
                total[name] = total.get(name, 0) + value
    return total
