"""What the API takes and gives of pushes to a hub."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from steerboard.runs.schemas.requests import PoolName
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.files.base_sources import source_type
from steerboard_contracts.run_kinds.push import Card, Repository, WeightsForm


def _hub_name(name: str) -> str:
    if source_type(name) != "hub" or ":" in name:
        raise ValueError("is not a name on the hub: write org/name or org/name@revision")
    return name


HubBaseName = Annotated[
    str,
    Field(max_length=400, description="Hub name of the model below an adapter, `org/name[@revision]`."),
    AfterValidator(_hub_name),
]
Licence = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="The hub's word for it, such as apache-2.0.")
]


class DatasetPush(BaseModel):
    """`card`: README.md, where it should be another than `card` of the same item writes."""

    model_config = ConfigDict(extra="forbid")

    repo: Repository
    private: Annotated[bool, Field(description="Create the repository as a private one.")] = True
    licence: Licence | None = None
    card: Card | None = None
    pool: PoolName = "default"


class ModelPush(DatasetPush):
    weights: Annotated[WeightsForm, Field(description="LoRA weights merged into their base, or the adapter alone.")] = (
        "merged"
    )
    base: HubBaseName | None = None


class SnippetOut(BaseModel):
    """`text`: Python that runs as it is. `asked`: what it asks for; null for models that take no score. `needs`: the
    packages that it imports."""

    text: str
    asked: Condition | None
    needs: list[str]


class CardOut(BaseModel):
    """`text`: the README.md that a push would send. `base`: of an adapter, what it is put on. `token`: where the token
    comes from with which the hub is asked; null where this server knows none."""

    text: str
    base: str | None = None
    token: Literal["project", "server"] | None
