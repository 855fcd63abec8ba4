"""Datasets: made from rows of any form, and read back."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Literal

from steerboard_client import frames
from steerboard_client._async.connection import Connection
from steerboard_client.errors import BadInput, RunFailed
from steerboard_client.schemas import DatasetOut
from steerboard_client.wire import path_of

Kind = Literal["instructions", "preferences", "prompts", "labelled", "unpaired", "stepwise"]
Split = Literal["all", "train", "held_out"]
_POLL_SECONDS = 0.5


class Dataset:
    """An immutable dataset of the project. `info` is what the API knows of it."""

    def __init__(self, connection: Connection, info: DatasetOut) -> None:
        self._connection = connection
        self.info = info

    @property
    def id(self) -> str:
        return str(self.info.id)

    @property
    def name(self) -> str:
        return self.info.name

    def __len__(self) -> int:
        return self.info.rows

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {self.info.rows} {self.info.kind}>"

    async def download(self, target: str | Path, *, split: Split = "all") -> Path:
        """A file of the format that its ending names: .jsonl, .jsonl.gz or .parquet."""
        path = Path(target)
        format_ = next((end for end in ("jsonl.gz", "jsonl", "parquet") if path.name.endswith(f".{end}")), None)
        if format_ is None:
            raise BadInput(f"{path.name} ends with none of .jsonl, .jsonl.gz and .parquet", code="unknown_format")
        await self._connection.download(path_of("datasets", self.id, "export"), path, format=format_, split=split)
        return path

    async def rows(self, *, split: Split = "all") -> list[frames.Row]:
        with tempfile.TemporaryDirectory() as folder:
            path = await self.download(Path(folder, "rows.jsonl"), split=split)
            return list(frames.read_rows(path))

    async def to_pandas(self, *, split: Split = "all") -> Any:
        return frames.to_pandas(await self.rows(split=split))

    async def to_polars(self, *, split: Split = "all") -> Any:
        return frames.to_polars(await self.rows(split=split))

    async def to_arrow(self, *, split: Split = "all") -> Any:
        with tempfile.TemporaryDirectory() as folder:
            return frames.to_arrow(await self.download(Path(folder, "rows.parquet"), split=split))

    async def to_datasets(self, *, split: Split = "all") -> Any:
        return frames.to_datasets(await self.to_arrow(split=split))


async def upload(
    connection: Connection,
    name: str,
    data: Any,
    kind: Kind | None,
    mapping: Mapping[str, str] | None,
    bad_rows: Literal["refuse", "skip"],
) -> Dataset:
    """Raises `BadInput`, `ApiError`, and `RunFailed` (the import's own code) for rows that cannot be imported."""
    if isinstance(data, (str, Path)):
        with Path(data).open("rb") as file:
            made = await _send(connection, name, Path(data).name, file)
    else:
        with tempfile.TemporaryFile() as file:
            frames.write_rows(data, file)
            made = await _send(connection, name, f"{name}.jsonl", file)
    path = path_of("imports", made["id"])
    options = {"kind": kind, "mapping": dict(mapping) if mapping else None, "bad_rows": bad_rows}
    given = {option: value for option, value in options.items() if value is not None}
    response = await connection.request("PATCH", path, json=given)
    changed = response.json()
    if changed["problem"]:
        await connection.request("DELETE", path)  # no one will finish it
        raise BadInput(
            str(changed["problem"]["detail"]), code=str(changed["problem"]["code"]), hint=changed["problem"].get("hint")
        )
    state = await connection.post(f"{path}/start")
    while state["state"] not in ("succeeded", "failed", "cancelled"):
        await asyncio.sleep(_POLL_SECONDS)
        state = await connection.get(path)
    if state["state"] != "succeeded":
        problem = state["problem"] or {"detail": f"the import was {state['state']}", "code": "import_failed"}
        raise RunFailed(str(problem["detail"]), code=str(problem["code"]), hint=problem.get("hint"))
    return await find(connection, str(state["dataset_id"]))


async def find(connection: Connection, name: str) -> Dataset:
    return Dataset(connection, await connection.load(DatasetOut, path_of("datasets", name)))


async def _send(connection: Connection, name: str, file_name: str, file: IO[bytes]) -> Any:
    """Sends it in parts: sent again after a broken connection, by this process or a later one, an upload continues."""
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    announced = {"file_name": file_name[-255:], "size": file.tell(), "sha256": digest.hexdigest()}
    upload = await connection.post("imports/uploads", announced)
    for number in upload["missing"]:
        file.seek(number * upload["part_size"])
        part = file.read(upload["part_size"])
        path = path_of("imports", "uploads", upload["id"], "parts", str(number))
        await connection.post(path, files={"file": (file_name, io.BytesIO(part))}, timeout=None)
    return await connection.post("imports", data={"name": name, "upload": upload["id"]}, timeout=None)
