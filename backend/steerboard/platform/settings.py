"""Settings of the platform, from `STEERBOARD_*` environment variables."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from steerboard_contracts.errors import ErrorLocation, SteerboardError
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.network.addresses import AllowList

Seconds = Annotated[float, Field(gt=0)]


class BadSetting(SteerboardError):
    """A setting has a value that it cannot have."""

    code = "bad_setting"
    title = "A setting cannot be used"


class GroupRole(BaseModel):
    """People of a group of the OpenID provider have a role in a project. `*`: everyone who signs in there."""

    model_config = ConfigDict(extra="forbid")

    group: str
    project: str
    role: Literal["owner", "engineer", "reviewer", "annotator", "viewer"]


class Settings(BaseSettings):
    """The settings of a server. Without URLs, `steerboard up` starts embedded servers below `home` and sets them."""

    model_config = SettingsConfigDict(env_prefix="STEERBOARD_", extra="ignore")

    # `production` refuses to start without what a server needs, or with secrets that anyone could guess
    # (`platform.security.production`).
    environment: Literal["development", "production"] = "development"
    home: Path = Path(".steerboard")
    database_url: str = ""
    redis_url: str = ""
    artifact_url: str = ""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8700
    lease_seconds: Seconds = 30.0
    heartbeat_seconds: Seconds = 5.0
    sweep_seconds: Seconds = 5.0
    poll_seconds: Seconds = 3.0
    # How often a run's stage may fail; and how often its machine may be lost, or the platform with it.
    max_attempts: Annotated[int, Field(ge=1)] = 3
    max_interruptions: Annotated[int, Field(ge=1)] = 10
    retry_seconds: Annotated[float, Field(ge=0)] = 2.0
    # Threads of each process of a stage; by default the workers of a machine share its cores.
    stage_threads: Annotated[int | None, Field(ge=1)] = None
    # At least so many workers share this machine's cores, also those that are only starting or have another host name.
    machine_workers: Annotated[int, Field(ge=1)] = 1
    # The memory of all processes of a stage together; by default 80% of the machine's or the container's.
    stage_memory_mb: Annotated[int | None, Field(ge=1)] = None
    # A stage that reports nothing for so long counts as hung, and is ended. Far above what any step of work takes.
    stage_stall_seconds: Seconds = 7200.0
    # The same limit while a stage opens a model or tokenises with it: longer than a large one takes from a slow disk.
    model_stall_seconds: Seconds = 1800.0
    # Stages and models of the playground are forked from a process that has imported what they need.
    warm_start: bool = True
    # A stage parent that several workers of this machine share, by its socket; by default each has its own, and the
    # interactive worker always does.
    stage_parent: Path | None = None
    # The memory of the models that the interactive worker keeps loaded; by default a third of the memory, or 70% of a
    # GPU's.
    interactive_memory_mb: Annotated[int | None, Field(ge=1)] = None
    # Time limits of one request to a model of the playground (to load, to write, to score): in all, and without a sign
    # of life.
    interactive_seconds: Seconds = 1200.0
    interactive_stall_seconds: Seconds = 120.0
    # Python of the environment that has vLLM; by default that of `make setup-vllm` (`platform.processes.vllm`).
    vllm_python: Path | None = None
    # Python of the environment that has lm-evaluation-harness; by default that of `make setup-benchmarks`
    # (`platform.processes.lm_eval`).
    benchmarks_python: Path | None = None
    # Python of the environment that has llama.cpp and its converter; by default that of `make setup-gguf`
    # (`platform.processes.llama_cpp`).
    gguf_python: Path | None = None
    # The size of inputs that a worker keeps on its disk; by default half of what is free there
    # (`platform.storage.local_cache`).
    cache_mb: Annotated[int | None, Field(ge=1)] = None
    # How long a worker keeps the checkpoints of a failed or cancelled run on its own disk.
    work_days: Annotated[float, Field(ge=0)] = 14.0
    # The space that is kept free for the database on every disk that is written to (`steerboard_contracts.files.disk`);
    # by default a twentieth of the disk, at most 2 GB.
    disk_reserve_mb: Annotated[int | None, Field(ge=0)] = None
    # The memory of a process that reads an imported file, beyond what it has at its start, and the time of an import
    # that a request awaits.
    import_memory_mb: Annotated[int, Field(ge=1)] = 4096
    import_seconds: Seconds = 3600.0
    max_upload_mb: Annotated[int, Field(ge=1)] = 20_480
    held_out_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1
    # Hosts, addresses and networks, not public, that endpoints, notices and rewards may lead to
    # (`steerboard_contracts.network.addresses`).
    allowed_private: str = ""
    # Folders below which models of this machine may be read as bases, with `:` between them; by default none, and the
    # current folder for `steerboard up` outside of production.
    model_roots: str = ""
    # Folders below which reward functions may be named, with `:` between them; by default none.
    reward_roots: str = ""
    # Folders below which tasks of academic benchmarks may be named, with `:` between them; by default none.
    task_roots: str = ""
    # Seals stored secrets; without it a file of the home does (`platform.security.secrets`).
    secret_key: SecretStr = SecretStr("")
    # Opens what an older key has sealed, while the key is being changed.
    secret_key_previous: SecretStr = SecretStr("")
    # Names by which the server may be reached, besides this machine's and that of `public_url`
    # (`platform.http.hosts`): `board.example.org`, `.example.org` with all below it, `*` for any.
    allowed_hosts: str = ""
    # Where people reach the dashboard, for links in notices.
    public_url: str = ""
    # The server that sends e-mail, and from whom; without both, notices by e-mail are refused.
    smtp_host: str = ""
    smtp_port: Annotated[int, Field(ge=1, le=65535)] = 587
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str = ""
    smtp_password: SecretStr = SecretStr("")
    mail_from: str = ""
    # The OpenID provider at which people may sign in; and which roles its groups give, as a JSON list.
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: SecretStr = SecretStr("")
    oidc_name: str = "single sign-on"
    oidc_scopes: str = "openid email profile"
    oidc_groups_claim: str = "groups"
    oidc_roles: list[GroupRole] = []
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["text", "json"] = "text"
    # Who reads `/metrics` in production; without it no one does.
    metrics_token: SecretStr = SecretStr("")
    # Addresses and networks of proxies whose X-Forwarded-For and -Proto are believed.
    trusted_proxies: str = "127.0.0.1"
    # A worker touches it at every heartbeat, for probes.
    alive_file: Path | None = None
    # How long a process waits at its start for the database and its schema.
    start_seconds: Seconds = 60.0
    _given: frozenset[str] = PrivateAttr(default=frozenset())

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _psycopg(cls, value: str) -> str:
        """Accept the usual spellings of a PostgreSQL URL; SQLAlchemy needs the driver named."""
        for prefix in ("postgresql://", "postgres://"):
            if value.startswith(prefix):
                return "postgresql+psycopg://" + value.removeprefix(prefix)
        return value

    @field_validator("allowed_private")
    @classmethod
    def _readable(cls, value: str) -> str:
        AllowList(value)
        return value

    @model_validator(mode="after")
    def _defaults(self) -> Settings:
        self._given = frozenset(name for name in self.model_fields_set if getattr(self, name) not in ("", None))
        if not self.artifact_url:
            self.artifact_url = f"file://{self.home / 'artifacts'}"
        self.public_url = self.public_url.rstrip("/") or f"http://{self.host}:{self.port}"
        return self

    @property
    def model_folders(self) -> LocalFolders:
        """What of this machine may be read as a base model: never what Steerboard itself keeps."""
        return self._folders(self.model_roots)

    @property
    def reward_folders(self) -> LocalFolders:
        """What of this machine may be run as a reward function."""
        return self._folders(self.reward_roots)

    @property
    def task_folders(self) -> LocalFolders:
        """What of this machine may be run as tasks of academic benchmarks."""
        return self._folders(self.task_roots)

    def _folders(self, given: str) -> LocalFolders:
        roots = tuple(Path(root).expanduser().absolute() for root in given.split(os.pathsep) if root.strip())
        store = self.artifact_url.removeprefix("file://") if self.artifact_url.startswith("file://") else None
        return LocalFolders(roots=roots, never=(self.home, *([Path(store)] if store else [])))

    def was_given(self, name: str) -> bool:
        """Whether someone set it, to something, rather than that it has its default."""
        return name in self._given


@lru_cache
def get_settings() -> Settings:
    """The settings of this process's environment. Raises `BadSetting`, which never repeats a value: it may be a
    secret."""
    try:
        return Settings()
    except ValidationError as error:
        places = [
            ErrorLocation(location="STEERBOARD_" + ".".join(map(str, fault["loc"])).upper(), message=fault["msg"])
            for fault in error.errors()
        ]
        raise BadSetting("Some settings cannot be used.", errors=places) from None
