"""The figures of a dataset as the API shows them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from steerboard.datasets.schemas import Bin, RewardFigures


class Turns(BaseModel):
    """Messages of a prompt."""

    mean: float
    max: int


class LengthFigures(BaseModel):
    """The lengths of one field of every row. Bins of equal width up to the 99th percentile; the last one reaches to the
    longest."""

    field: Literal["prompt", "response", "chosen", "rejected", "completions"]
    unit: Literal["characters"] = "characters"
    mean: float
    p50: float
    p95: float
    max: int
    bins: list[Bin]


class SourceRows(BaseModel):
    source: str
    rows: int


class Duplicates(BaseModel):
    """`repeated_prompts`: prompts of more than one row. `repeated_rows`: rows that equal an earlier one."""

    distinct_prompts: int
    repeated_prompts: int
    repeated_rows: int


class NormalisedRewards(BaseModel):
    """The same bins in z = (reward - mean) / sd, by the pinned normaliser or else the source's own figures."""

    mean: float
    sd: float
    bins: list[Bin]


class SourceRewards(BaseModel):
    source: str
    kind: Literal["model", "weighted", "imported"]
    figures: RewardFigures
    bins: list[Bin]
    normalised: NormalisedRewards


class LengthBin(BaseModel):
    """Rows whose response has `low` to `high` characters (`high` itself only in the last bin), and their rewards."""

    low: int
    high: int
    n: int
    mean: float
    p20: float
    p80: float


class RewardByLength(BaseModel):
    """Raw rewards of the pinned source, or else of the first one, in bins of about as many rows each."""

    source: str
    unit: Literal["characters"] = "characters"
    bins: list[LengthBin]


class SearchState(BaseModel):
    """`done` rows are in the search index. Until it is ready, `q` answers `search_not_ready` for larger datasets."""

    ready: bool
    done: int


class DatasetStatisticsOut(BaseModel):
    rows: int
    held_out_rows: int
    turns: Turns
    lengths: list[LengthFigures]
    sources: list[SourceRows] = Field(description="The 50 largest sources of the rows, where rows name one.")
    duplicates: Duplicates
    rewards: list[SourceRewards] = Field(
        description="Rewards of every source that graded these rows; the pinned one first."
    )
    reward_by_length: RewardByLength | None
    search: SearchState


class SampleCount(BaseModel):
    """`exact` false: there are at least so many (a quoted phrase over many rows)."""

    rows: int
    exact: bool
