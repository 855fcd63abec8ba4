"""What the API sees of collections."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

CollectionKind = Literal["instructions", "preferences"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class CollectionCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name
    kind: CollectionKind


class FrozenDataset(BaseModel):
    id: uuid.UUID
    name: str
    rows: int
    created_at: dt.datetime


class CollectionOut(BaseModel):
    """`rows` without removed ones; `frozen_rows` of them are in a dataset already. `datasets` newest first."""

    id: uuid.UUID
    name: str
    kind: CollectionKind
    rows: int
    frozen_rows: int
    datasets: list[FrozenDataset]
    created_by: str
    created_at: dt.datetime


class CollectionRowAdd(BaseModel):
    """`sample` as in a file of the collection's kind: {prompt, response} or {prompt, chosen, rejected}."""

    model_config = ConfigDict(extra="forbid")

    sample: dict[str, Any]
    provenance: Annotated[
        dict[str, Any] | None, Field(description="Where it came from. Kept with the sample in every dataset.")
    ] = None


class CollectionRowOut(BaseModel):
    """`dataset_id`: the newest dataset that has the row. `cut`: its texts are so long that they end early here."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    place: int
    sample: dict[str, Any]
    provenance: dict[str, Any] | None
    dataset_id: uuid.UUID | None
    actor: str
    created_at: dt.datetime
    removed_at: dt.datetime | None
    cut: bool = False


class CollectionRowChanged(CollectionRowOut):
    """`rows`: how many the collection has now."""

    rows: int


class CollectionFreeze(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[Name | None, Field(description="Name of the dataset; `COLLECTION-vN` by default.")] = None
