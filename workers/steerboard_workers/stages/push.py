"""The push stage: a model or a dataset becomes the newest commit of a hub's repository.

One commit has everything. What the hub has already is not sent again, and no commit is made where nothing differs, so
an attempt that was killed anywhere is repeated by the next one without doubling a file or a commit.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import GGUF, is_model_file
from steerboard_contracts.models import MODEL_INFO_FILE
from steerboard_contracts.network.hub_errors import hub_push_errors
from steerboard_contracts.run_kinds.push import PushConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_workers.stages.runtime import Stage

CARD = "README.md"
TAG = "steerboard"
# Files of a dataset that a former push may have left.
_DATA = "data/"
# Answers of a hub that has no such path.
_NOT_SPOKEN = (404, 405, 501)
_ADAPTER, _BASE = "adapter_config.json", "base/"

Content = Path | bytes


def run(stage: Stage) -> Succeeded:
    """Its summary: `repo`, `commit`, `url`, `files`, `bytes`, `private`."""
    config = stage.spec.config
    assert isinstance(config, PushConfig)
    model = stage.has_input("model")
    files = _model_files(stage, config) if model else _dataset_files(stage)
    files[CARD] = config.card.encode()
    return _pushed(stage, config, "model" if model else "dataset", files)


def _pushed(stage: Stage, config: PushConfig, kind: str, files: Mapping[str, Content]) -> Succeeded:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

    token = get_token()
    api = HfApi(token=token)
    sizes = {
        path: content.stat().st_size if isinstance(content, Path) else len(content) for path, content in files.items()
    }
    with hub_push_errors(config.repo, token):
        stage.progress(0, len(files), "files", "opening the repository")
        api.create_repo(config.repo, repo_type=kind, private=config.private, exist_ok=True)
        about = api.repo_info(config.repo, repo_type=kind)
        there = [sibling.rfilename for sibling in about.siblings or []]
        _check_ours(api, config, kind, about, there)
        stale = [path for path in there if path not in files and _is_of_a_push(path, kind)]
        if about.private and not config.private:
            stage.log(f"{config.repo} is private already, and stays so", "warning")
        by = "Xet" if _settle_xet(api, config.repo, kind) else "LFS"
        stage.log(f"pushing {len(files)} files, {sum(sizes.values()):,} bytes, to {config.repo}, large ones by {by}")
        stage.progress(0, len(files), "files", "sending")
        operations: list[Any] = [
            CommitOperationAdd(path, str(content) if isinstance(content, Path) else content)
            for path, content in sorted(files.items())
        ]
        operations += [CommitOperationDelete(path) for path in stale]
        commit = api.create_commit(
            config.repo,
            operations,
            commit_message=f"Push {stage.spec.name} by Steerboard",
            repo_type=kind,
            # Someone else's commit in between is noticed, and not undone.
            parent_commit=about.sha,
        )
    stage.progress(len(files), len(files), "files", "sending")
    folder = "" if kind == "model" else "datasets/"
    summary: dict[str, Any] = {
        "repo": config.repo,
        "commit": commit.oid,
        "url": f"{api.endpoint}/{folder}{config.repo}",
        "files": len(files),
        "bytes": sum(sizes.values()),
        "private": bool(about.private),
    }
    return Succeeded(outputs=[], summary=summary)


def _settle_xet(api: Any, repo: str, kind: str) -> bool:
    """Whether large files go by Xet. `huggingface_hub` sends them so wherever hf_xet is installed, which a hub of one's
    own may not take; it has no write token for it then, and they go by LFS."""
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import build_hf_headers

    if constants.HF_HUB_DISABLE_XET or importlib.util.find_spec("hf_xet") is None:
        return False
    url = f"{api.endpoint}/api/{kind}s/{repo}/xet-write-token/main"
    status = get_session().get(url, headers=build_hf_headers(token=api.token)).status_code
    if status in _NOT_SPOKEN:
        constants.HF_HUB_DISABLE_XET = True
    return not constants.HF_HUB_DISABLE_XET


def _check_ours(api: Any, config: PushConfig, kind: str, about: Any, there: Iterable[str]) -> None:
    """Raises `BadInput`: (`hub_repo_public`) where a private push would be seen by everyone, (`hub_repo_taken`) where
    the repository has files of something else."""
    if config.private and not about.private:
        raise BadInput(
            f"{config.repo} is public already, and a private push was asked for",
            code="hub_repo_public",
            hint="Choose another repository, make this one private on the hub, or push with private off.",
        )
    others = [path for path in there if path not in (".gitattributes", ".gitignore")]
    if not others:
        return
    card = about.card_data
    tags = (card.to_dict().get("tags") or []) if card is not None else []
    if TAG not in tags and not (kind == "model" and MODEL_INFO_FILE in others):
        raise BadInput(
            f"{config.repo} holds files that Steerboard did not push, such as {sorted(others)[0]}",
            code="hub_repo_taken",
            hint="Choose another repository, or empty this one on the hub.",
        )


def _is_of_a_push(path: str, kind: str) -> bool:
    """Whether an earlier push may have left a file, which would be read with the new ones."""
    if kind == "dataset":
        return path.startswith(_DATA)
    return path.startswith(_BASE) or path == _ADAPTER or (is_model_file(path) and not path.endswith(GGUF))


def _dataset_files(stage: Stage) -> dict[str, Content]:
    """The folder that the supervisor exported."""
    folder = stage.path(stage.dataset("data").path)
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _model_files(stage: Stage, config: PushConfig) -> dict[str, Content]:
    folder = stage.model_path("model")
    whole = not (folder / _ADAPTER).is_file()
    if not whole and config.weights == "merged":
        from steerboard_workers.stages.models.merging import whole_folder

        (folder, _), whole = whole_folder(stage, "model"), True
    files: dict[str, Content] = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != CARD
    }
    if whole:
        return files
    settings = json.loads((folder / _ADAPTER).read_bytes())
    name, _, revision = (config.base or "").partition("@")
    settings |= {"base_model_name_or_path": name, "revision": revision or None}
    files = {path: content for path, content in files.items() if not path.startswith(_BASE)}
    return files | {_ADAPTER: (json.dumps(settings, indent=2, sort_keys=True) + "\n").encode()}
