"""What the API takes and gives of trackers."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from steerboard_contracts.fields import RunKind

MOST_KINDS = 20
_CONTROL = r"^[^\x00-\x1f\x7f]+$"
# Names in W&B and Trackio: of a project, of a team.
SpaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
ExperimentName = Annotated[str, Field(pattern=_CONTROL, max_length=250)]
UserName = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f:]+$", max_length=250)]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=1000)]


def _printable(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value().isprintable() or not secret.get_secret_value().isascii():
        raise ValueError("a secret has only printable ASCII characters")
    return secret


PrintableSecret = Annotated[Secret, AfterValidator(_printable)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MlflowSettings(_Settings):
    """A tracking server at `url`. With a `user` the secret is its password, otherwise a token."""

    kind: Literal["mlflow"] = "mlflow"
    url: str
    experiment: ExperimentName | None = Field(default=None, description="By default the project's name.")
    user: UserName | None = None


class WandbSettings(_Settings):
    """W&B, whose API key is the secret. `offline` writes to the server's disk, for `wandb sync`, and needs no key."""

    kind: Literal["wandb"] = "wandb"
    mode: Literal["online", "offline"] = "online"
    url: str | None = Field(default=None, description="A server of your own; by default W&B's.")
    entity: SpaceName | None = Field(default=None, description="A team; by default that of the key.")
    project: SpaceName | None = Field(default=None, description="By default the project's name.")


class TensorBoardSettings(_Settings):
    """Event files on the server's disk."""

    kind: Literal["tensorboard"] = "tensorboard"


class TrackioSettings(_Settings):
    """Trackio's database on the server's disk."""

    kind: Literal["trackio"] = "trackio"
    project: SpaceName | None = Field(default=None, description="By default the project's name.")


TrackerSettings = Annotated[
    MlflowSettings | WandbSettings | TensorBoardSettings | TrackioSettings, Field(discriminator="kind")
]
TrackerKind = Literal["mlflow", "wandb", "tensorboard", "trackio"]
RunKinds = Annotated[
    list[RunKind],
    Field(min_length=1, max_length=MOST_KINDS, description="Kinds of the runs that are exported."),
    AfterValidator(lambda kinds: list(dict.fromkeys(kinds))),
]


class TrackerCreate(BaseModel):
    """Runs that begin from now on are exported. The secret is never shown again."""

    model_config = ConfigDict(extra="forbid")

    name: str
    settings: TrackerSettings
    secret: PrintableSecret | None = None
    run_kinds: RunKinds = ["train"]


class TrackerChange(BaseModel):
    """Only what is given changes. Another `url` needs the secret again: the stored one belongs to the former server."""

    model_config = ConfigDict(extra="forbid")

    settings: TrackerSettings | None = None
    secret: PrintableSecret | None = None
    run_kinds: RunKinds | None = None
    active: bool | None = None


class TrackerOut(BaseModel):
    """`last_error` is null once something has been exported again; until `next_look_at` it is left alone. `runs`
    counts what was exported, and `failing` those of which the last attempt failed. `folder`: of the server's disk."""

    id: uuid.UUID
    name: str
    kind: TrackerKind
    settings: TrackerSettings
    has_secret: bool
    run_kinds: list[RunKind]
    active: bool
    folder: str | None
    runs: int
    failing: int
    last_export_at: dt.datetime | None
    last_error: str | None
    next_look_at: dt.datetime | None
    created_at: dt.datetime


class RunExportIn(BaseModel):
    """A run that is exported although it began before the tracker was made, or whose export is tried again now."""

    model_config = ConfigDict(extra="forbid")

    run: Annotated[str, Field(min_length=1, max_length=200, description="PIPELINE.STAGE, an id or the end of one.")]


class RunExportOut(BaseModel):
    """How far a run has got to a tracker. `link`: its page there; or `folder`, where the server keeps its files.
    `complete`: its end was exported. `next_attempt_at`: null unless the last attempt failed."""

    tracker: str
    kind: TrackerKind
    active: bool
    link: str | None
    folder: str | None
    step: int | None
    complete: bool
    last_export_at: dt.datetime | None
    last_error: str | None
    next_attempt_at: dt.datetime | None
