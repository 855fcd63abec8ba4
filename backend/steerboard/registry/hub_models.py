"""A model on the Hugging Face hub before its download: what it weighs, and what its settings have.

Only the listing, two settings files and the header of a GGUF file are read, never weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from steerboard.platform.hub import hub_errors
from steerboard_contracts.errors import BadModel
from steerboard_contracts.files.base_sources import GGUF, base_place, gguf_to_read, is_model_file
from steerboard_contracts.files.gguf import read_header
from steerboard_contracts.files.model_facts import ModelFacts, facts_of_gguf, licence_named

_SECONDS = 20.0
_SETTINGS_BYTES = 16 << 20
# The vocabulary is part of a GGUF file's header.
_HEADER_BYTES = 64 << 20


@dataclass(frozen=True)
class HubModel:
    """`revision` is the commit, `file` the GGUF file of several that is read."""

    facts: ModelFacts
    revision: str
    file: str | None
    gated: bool


def hub_model(source: str, endpoint: str | None = None, token: str | None = None) -> HubModel:
    """What an import of `org/name[@revision][:file.gguf]` would read. `endpoint` is the hub's address; HF_ENDPOINT
    or huggingface.co when None. `token`: that of the environment when None.

    Raises `BadInput` (`hub_not_found`, `hub_gated`, `hub_unavailable`, `not_a_model`), `SeveralGgufFiles`,
    `UnsupportedGguf`, `BadModel`.
    """
    from huggingface_hub import HfApi

    place, chosen = base_place(source)
    name, _, revision = place.partition("@")
    api = HfApi(endpoint=endpoint, token=token)
    with hub_errors("model", name, revision or None):
        about = api.model_info(name, revision=revision or None, files_metadata=True, timeout=_SECONDS)
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in about.siblings or []}
    file = gguf_to_read(list(sizes), name, chosen)
    repository = _Repository(name, about.sha or revision, api.endpoint, token)
    gated = bool(about.gated)
    card = cast(Mapping[str, Any], about.card_data.to_dict() if about.card_data else {})
    if file is not None:
        facts = repository.gguf(file, sizes[file])
        licence = licence_named(card) or facts.licence
        return HubModel(facts.model_copy(update={"licence": licence}), repository.revision, file, gated)
    read = {path: size for path, size in sizes.items() if is_model_file(path) and not path.endswith(GGUF)}
    facts = ModelFacts(
        config=repository.settings("config.json"),
        parameters=about.safetensors.total if about.safetensors else 0,
        files=len(read),
        size=sum(read.values()),
        weights=sum(size for path, size in read.items() if path.endswith(".safetensors")),
        template="chat_template.jinja" in read or _has_template(repository, read),
        licence=licence_named(card),
    )
    return HubModel(facts, repository.revision, None, gated)


def _has_template(repository: _Repository, files: Mapping[str, int]) -> bool:
    name = "tokenizer_config.json"
    return name in files and bool(repository.settings(name).get("chat_template"))


@dataclass(frozen=True)
class _Repository:
    name: str
    revision: str
    endpoint: str
    token: str | None = field(repr=False)

    def settings(self, path: str) -> dict[str, Any]:
        """A JSON object. Raises `BadModel`."""
        with self._opened(path) as file:
            content = file.read(_SETTINGS_BYTES)
        try:
            settings = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise BadModel(f"{path} of {self.name} cannot be read: {error}") from error
        if not isinstance(settings, dict):
            raise BadModel(f"{path} of {self.name} is not a JSON object")
        return settings

    def gguf(self, path: str, size: int) -> ModelFacts:
        with self._opened(path) as file:
            return facts_of_gguf(read_header(cast(BinaryIO, file), size, path), size)

    @contextmanager
    def _opened(self, path: str) -> Iterator[_Arriving]:
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        url = hf_hub_url(self.name, path, revision=self.revision, endpoint=self.endpoint)
        with (
            hub_errors("model", self.name, self.revision),
            get_session().stream(
                "GET", url, headers=build_hf_headers(token=self.token), timeout=_SECONDS, follow_redirects=True
            ) as response,
        ):
            if response.is_error:
                response.read()
            hf_raise_for_status(response)
            yield _Arriving(response.iter_bytes())


class _Arriving:
    """A file of which only so much is fetched as is read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._held, self._taken = parts, bytearray(), 0

    def read(self, size: int) -> bytes:
        """Fewer bytes where the file ends, or is longer than what anyone may fetch."""
        while len(self._held) < size and self._taken < _HEADER_BYTES:
            part = next(self._parts, None)
            if part is None:
                break
            self._taken += len(part)
            self._held += part
        data = bytes(self._held[:size])
        del self._held[:size]
        return data
