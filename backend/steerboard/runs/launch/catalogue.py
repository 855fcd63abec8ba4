"""What a project has, as the checks of a launch and the planner of recipes ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.conversions.launch import rows_fault
from steerboard.datasets.lookup import dataset_names
from steerboard.datasets.service import get_dataset
from steerboard.datasets.tables import Dataset
from steerboard.platform.http.errors import NotFound
from steerboard.platform.security.safe_http import AddressRefused, BadUrl, check_url, refuse_private
from steerboard.platform.settings import get_settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.base_sources import PinnedSource, pinned
from steerboard.registry.endpoints.service import endpoints_of, get_endpoint
from steerboard.registry.service import get_model, model_names
from steerboard.registry.tables import Model
from steerboard.registry.tokenizers import tokenizer_fault
from steerboard.runs import hooks
from steerboard.runs.launch.lookup import KnownDataset, KnownModel
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.judge_reward import JudgeReward, PinnedJudge
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.specs.run_kind import RunKindSpec

T = TypeVar("T")


class ProjectCatalogue:
    """The `Catalogue` of a project in the database, asked once for what many stages need.

    `folders`: which folders of this machine may be read for the caller; with None, none. `store`: where the files of
    models are; without it their tokenizers are left to the runs."""

    def __init__(
        self, session: Session, project: Project, folders: LocalFolders | None, store: ArtifactStore | None
    ) -> None:
        self._session = session
        self._project = project
        self._folders = folders
        self._store = store
        self._known: dict[tuple[Any, ...], Any] = {}

    def dataset(self, ref: str) -> KnownDataset | None:
        try:
            dataset = get_dataset(self._session, self._project, ref)
        except NotFound:
            return None
        fields = dataset.origin.get("fields")
        held_out, names = dataset.held_out_rows, None if fields is None else tuple(fields)
        return KnownDataset(dataset.id, dataset.name, dataset.kind, dataset.rows, held_out, names)

    def model(self, ref: str) -> KnownModel | None:
        try:
            model = get_model(self._session, self._project, ref)
        except NotFound:
            return None
        adapter, window = model.info.get("lora") is not None, model.info.get("max_length")
        return KnownModel(model.id, model.name, model.role, adapter=adapter, window=window)

    def pinned(self, source: str) -> PinnedSource:
        return self._once(("pinned", source), lambda: pinned(self._session, self._project, source, self._folders))

    def rows_fault(self, dataset: KnownDataset, kind: RunKindSpec, slot: str, config: RunConfig | None) -> str | None:
        def ask() -> str | None:
            return rows_fault(self._session, self._session.get_one(Dataset, dataset.id), kind, slot, config)

        settings = None if config is None else config.model_dump_json()
        return self._once(("rows", dataset.id, kind.run, kind.method, slot, settings), ask)

    def tokenizer_fault(self, model: KnownModel, other: KnownModel) -> str | None:
        store = self._store
        if store is None:
            return None

        def ask() -> str | None:
            both = (self._session.get_one(Model, side.id) for side in (model, other))
            return tokenizer_fault(self._session, store, *both)

        return self._once(("tokenizers", model.id, other.id), ask)

    def dataset_names(self) -> list[str]:
        return self._once(("datasets",), lambda: dataset_names(self._session, self._project))

    def model_names(self) -> list[str]:
        return self._once(("models",), lambda: model_names(self._session, self._project))

    def endpoint_names(self) -> list[str]:
        return self._once(
            ("endpoints",), lambda: [endpoint.name for endpoint in endpoints_of(self._session, self._project)]
        )

    def has_endpoint(self, ref: str) -> bool:
        def ask() -> bool:
            try:
                get_endpoint(self._session, self._project, ref)
            except NotFound:
                return False
            return True

        return self._once(("endpoint", ref), ask)

    def address_fault(self, url: str) -> str | None:
        def ask() -> str | None:
            try:
                refuse_private(get_settings(), check_url(url))
            except BadUrl as wrong:
                return wrong.detail
            except AddressRefused as refused:
                return f"is a private address: {refused.detail}. {refused.hint}"
            return None

        return self._once(("address", url), ask)

    def reward_judge(self, rule: JudgeReward) -> PinnedJudge:
        return hooks.reward_judge(self._session, self._project, rule)

    def _once(self, key: tuple[Any, ...], ask: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = ask()
        answer: T = self._known[key]
        return answer
