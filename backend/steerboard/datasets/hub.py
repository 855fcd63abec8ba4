"""Data files of a dataset on the Hugging Face hub: listed, chosen by split, fetched one by one to disk."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from steerboard.platform.hub import hub_errors
from steerboard.platform.storage import scratch
from steerboard.platform.storage.disk import disk_of
from steerboard_contracts.errors import BadInput
from steerboard_files.errors import FileTooLarge
from steerboard_files.known import CSV, GZIPPED, JSON, JSONL, PARQUET
from steerboard_files.records import Source

_NAME = re.compile(r"(?P<repo>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?(?::(?P<part>[\w./-]+))?")
# In the order of preference: a repository of another format may well have a JSON file of settings.
_SUFFIXES = tuple(
    ending + packed
    for format_ in (PARQUET, JSONL, CSV, JSON)
    for ending in format_.endings
    for packed in (("", GZIPPED) if format_.text else ("",))
)


@dataclass(frozen=True)
class HubName:
    """`org/name[@revision][:part]`; `part` is a split (`train`), a folder or file of the repository."""

    repo: str
    revision: str | None
    part: str | None

    @classmethod
    def parse(cls, text: str) -> HubName:
        match = _NAME.fullmatch(text.removeprefix("hub:"))
        if match is None or ".." in text:
            raise BadInput(
                f"{text!r} is not a hub name", code="bad_hub_name", hint="Write org/name, org/name@revision:split."
            )
        return cls(match["repo"], match["revision"], match["part"])

    def __str__(self) -> str:
        return self.repo + (f"@{self.revision}" if self.revision else "") + (f":{self.part}" if self.part else "")


def choose_files(paths: list[str], part: str | None) -> list[str]:
    """The data files to read, of one format: those of `part`, else of the train split, else all.

    Raises `BadInput` (`no_data_files`) naming what the repository holds.
    """
    data = [path for path in paths if path.lower().endswith(_SUFFIXES) and not path.startswith(".")]
    wanted = [path for path in data if _belongs(path, part or "train")]
    if not wanted and part is None:
        wanted = data
    for suffix in _SUFFIXES:
        files = sorted(path for path in wanted if path.lower().endswith(suffix))
        if files:
            return files
    raise BadInput(
        f"the repository has no data files{f' for {part!r}' if part else ''}; it holds {', '.join(sorted(paths)[:20])}",
        code="no_data_files",
        hint="Name a split, folder or file after a colon: hub:org/name:train.",
    )


def _belongs(path: str, part: str) -> bool:
    """`data/train-00000-of-00002.parquet` and `train/0.jsonl` belong to `train`."""
    if path == part or path.startswith(f"{part.rstrip('/')}/"):
        return True
    pure = PurePosixPath(path)
    return part in pure.parts[:-1] or re.match(rf"{re.escape(part)}(?![A-Za-z0-9])", pure.name) is not None


@dataclass(frozen=True)
class HubFiles:
    """The data files of one commit: [(path, bytes)]. Read at the commit that was listed, they belong together."""

    hub: HubName
    files: list[tuple[str, int]]
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)

    def fetch(self, path: str) -> BinaryIO:
        """One file, opened; it is gone when it is closed. Raises `BadInput` (`hub_unavailable`)."""
        from huggingface_hub import HfApi

        api = HfApi(endpoint=self.endpoint, token=self.token)
        with hub_errors("dataset", self.hub.repo, self.hub.revision), scratch.folder("hub") as folder:
            disk_of(folder, "the hub's files").need(dict(self.files).get(path, 0))
            local = api.hf_hub_download(
                self.hub.repo, path, repo_type="dataset", revision=self.hub.revision, local_dir=folder
            )
            return Path(local).open("rb")  # the open file outlives its folder


def find_hub_files(name: str, max_bytes: int, endpoint: str | None = None, *, token: str | None = None) -> HubFiles:
    """What to read of a hub dataset, with its name pinned to a commit.

    `endpoint` is the hub's address; HF_ENDPOINT or huggingface.co when None. `token`: that of the environment when
    None. Raises `BadInput`
    (`hub_not_found`, `hub_gated`, `hub_unavailable`, `no_data_files`) and `FileTooLarge`.
    """
    from huggingface_hub import HfApi

    hub = HubName.parse(name)
    with hub_errors("dataset", hub.repo, hub.revision):
        info = HfApi(endpoint=endpoint, token=token).dataset_info(hub.repo, revision=hub.revision, files_metadata=True)
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or []}
    files = choose_files(list(sizes), hub.part)
    total = sum(sizes[path] for path in files)
    if total > max_bytes:
        raise FileTooLarge(f"{name} has {total:,} bytes of data; at most {max_bytes:,} are allowed")
    pinned = HubName(hub.repo, info.sha or hub.revision, hub.part)
    return HubFiles(pinned, [(path, sizes[path]) for path in files], endpoint, token)


def hub_sources(name: str, max_bytes: int, endpoint: str | None = None, *, token: str | None = None) -> list[Source]:
    """The data files of a hub dataset, each fetched to disk when it is opened and gone when it is closed.

    Raises the errors of `find_hub_files`, also when a source is opened.
    """
    repository = find_hub_files(name, max_bytes, endpoint, token=token)
    return [Source(path, partial(repository.fetch, path)) for path, _ in repository.files]
