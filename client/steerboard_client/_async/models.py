"""Models: asked for answers, downloaded, found by name or stage."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steerboard_client._async.connection import Connection
from steerboard_client.errors import RunFailed
from steerboard_client.schemas import AnswerOut, ModelDetail
from steerboard_client.wire import path_of

Prompt = str | Sequence[dict[str, str]]
_POLL_SECONDS = 0.2
_OPEN = ("queued", "running")


class Model:
    """A model of the registry. `info` is what the API knows of it."""

    def __init__(self, connection: Connection, info: ModelDetail) -> None:
        self._connection = connection
        self.info = info

    @property
    def id(self) -> str:
        return str(self.info.id)

    @property
    def name(self) -> str:
        return self.info.name

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.info.role}>"

    async def generate(
        self,
        prompt: Prompt,
        score: float | str | None = None,
        *,
        n: int = 1,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        max_new_tokens: int | None = None,
        guidance: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
    ) -> str | list[str]:
        """The answer to a prompt, a text or the turns of a chat; a list of `n` where `n` is above 1. `score`: what is
        asked for, or attributes such as `"helpfulness:4"`. Raises `RunFailed` with the code of a failed answer."""
        decoding: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "guidance": guidance}
        decoding |= {"max_new_tokens": max_new_tokens, "stop": list(stop)}
        texts = []
        for number in range(n):
            column = {"model": self.id, "score": score, "decoding": decoding}
            body = {"prompt": prompt if isinstance(prompt, str) else list(prompt), "columns": [column]}
            texts.append((await self._answer({**body, "seed": seed + number})).text)
        return texts[0] if n == 1 else texts

    async def _answer(self, body: dict[str, Any]) -> AnswerOut:
        made = await self._connection.post("playground/comparisons", body)
        path = path_of("playground", "comparisons", made["id"])
        while made["columns"][0]["state"] in _OPEN:
            await asyncio.sleep(_POLL_SECONDS)
            made = await self._connection.get(path)
        answer = AnswerOut.model_validate(made["columns"][0])
        if answer.state != "succeeded":
            error = made["columns"][0]["error"] or {}
            raise RunFailed(
                error.get("detail") or f"the answer was {answer.state}", code=error.get("code"), hint=error.get("hint")
            )
        return answer

    async def download(self, folder: str | Path) -> Path:
        """All files, each checked against its SHA-256. Files that already exist and are right are not loaded again,
        so a broken download continues. Raises `RunFailed` (`damaged_download`)."""
        target = Path(folder)
        for file in self.info.files:
            path = target / file.path
            if not path.resolve().is_relative_to(target.resolve()):
                raise RunFailed(f"{file.path} is outside of the folder", code="damaged_download")
            if path.is_file() and _sha256(path) == file.sha256:
                continue
            url = "/".join((path_of("models", self.id, "files"), *map(path_of, file.path.split("/"))))
            await self._connection.download(url, path)
            if _sha256(path) != file.sha256:
                path.unlink()
                raise RunFailed(f"{file.path} did not arrive as it was stored", code="damaged_download")
        return target


async def find(connection: Connection, ref: str) -> Model:
    """The model by id, name, `PIPELINE.STAGE`, or `@production`."""
    return Model(connection, await connection.load(ModelDetail, path_of("models", ref)))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
