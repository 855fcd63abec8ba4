"""Settings of the platform, from `STEERBOARD_*` environment variables."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from steerboard.platform.addresses import AllowList

Seconds = Annotated[float, Field(gt=0)]


class Settings(BaseSettings):
    """Without URLs, `steerboard up` starts embedded servers below `home` and sets them."""

    model_config = SettingsConfigDict(env_prefix="STEERBOARD_", extra="ignore")

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
    max_attempts: Annotated[int, Field(ge=1)] = 3
    retry_seconds: Annotated[float, Field(ge=0)] = 2.0
    stage_threads: int | None = None
    stage_memory_mb: int | None = None
    # Of the models that the interactive worker keeps loaded; by default a third of the memory, or 70% of a GPU's.
    interactive_memory_mb: Annotated[int | None, Field(ge=1)] = None
    max_upload_mb: Annotated[int, Field(ge=1)] = 20_480
    held_out_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1
    # Hosts, addresses and networks, not public, that endpoints and webhooks may lead to (`platform.addresses`).
    allowed_private: str = ""
    # Seals stored secrets; without it a file of the home does (`platform.secrets`).
    secret_key: SecretStr = SecretStr("")
    # Where people reach the dashboard, for links in webhooks.
    public_url: str = ""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

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
        if not self.artifact_url:
            self.artifact_url = f"file://{self.home / 'artifacts'}"
        self.public_url = self.public_url.rstrip("/") or f"http://{self.host}:{self.port}"
        return self


@lru_cache
def get_settings() -> Settings:
    return Settings()
