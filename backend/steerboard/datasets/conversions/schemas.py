"""What the API sees of methods for a dataset, and of conversions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.datasets.conversions.plans import Lost
from steerboard_contracts.conversions import ConversionName
from steerboard_contracts.samples import SampleKind

Fit = Literal["as_is", "after_conversion", "none"]


class Way(BaseModel):
    """How a method gets its rows: from the dataset as it is, or from what a conversion makes of it.

    `read` rows of the dataset become `rows` of `kind`: those read, less `lost`, plus `gained`. Of them the method
    leaves out `left_out`; it learns from `train` and is measured on `held_out`, which count two for each pair where it
    takes the sides apart.
    """

    conversion: ConversionName | None = Field(description="Null: none is needed.")
    source: str | None = Field(description="Whose rewards are pinned.")
    title: str
    about: str
    kind: SampleKind
    read: int
    rows: int
    lost: int
    lost_by: dict[Lost, int] = Field(description="Rows of the dataset of which nothing is made, by why.")
    gained: int = Field(description="New rows beyond one for each row that is used.")
    tied: int = Field(description="Comparisons that decide nothing: answers or prompts whose scores are equal.")
    left_out: int
    train: int
    held_out: int
    why_not: str | None = Field(description="Why the method cannot be trained on what this way gives.")


class MethodFit(BaseModel):
    """`ways`: those that work first, of which the first is the one with the most training rows."""

    method: str
    title: str
    label: str
    about: str
    source: str
    data: list[SampleKind]
    fit: Fit
    why_not: str | None
    ways: list[Way]


class DatasetMethods(BaseModel):
    """Every method of the platform, and what it could learn from one dataset."""

    dataset: str
    kind: SampleKind
    rows: int
    held_out_rows: int
    methods: list[MethodFit]


class ConversionCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    conversion: ConversionName
    source: Annotated[
        str | None, Field(description="Whose rewards `pinned_rewards` takes; the only one's by default.")
    ] = None
    name: Annotated[
        str | None, Field(description="Name of the new dataset. Null: DATASET-CONVERSION-N, N counting them.")
    ] = None


class ConversionOrigin(BaseModel):
    """The origin of a converted dataset, as stored."""

    type: Literal["conversion"] = "conversion"
    of: str
    of_id: str
    conversion: ConversionName
    read: int
    lost: dict[str, int]
    tied: int
    actor: str
