"""What the API and the CLI see of datasets."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, Literal

from pydantic import BaseModel, Field

from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.prompts import Normaliser, RewardPart
from steerboard_contracts.samples import SampleKind

BadRows = Literal["refuse", "skip"]
ExportFormat = Literal["jsonl", "jsonl.gz", "parquet"]
Match = Literal["words", "part"]
ExportSplit = Literal["all", "train", "held_out"]


class BadRowReport(BaseModel):
    """`line` counts from 1; rows for parquet."""

    line: int
    code: str
    reason: str
    file: str | None = None


class Spread(BaseModel):
    """Lengths in characters."""

    mean: float
    p50: float
    p95: float
    max: float


class RewardFigures(BaseModel):
    """Raw rewards of a labelled dataset."""

    n: int
    mean: float
    sd: float
    p20: float
    p50: float
    p80: float
    low: float
    high: float


class DatasetOut(BaseModel):
    id: uuid.UUID
    name: str
    kind: SampleKind
    rows: int
    held_out_rows: int
    content_hash: str
    origin: dict[str, Any] = Field(description="Where the rows came from: a file, a hub name or a run.")
    held_out_changes: list[HeldOutChange] = Field(
        description="Versions in its history that changed held-out rows. Figures on them are not of the labels that "
        "were imported."
    )
    base_dataset_id: uuid.UUID | None
    parent_id: uuid.UUID | None = Field(description="The dataset that this one was cleaned, converted or edited from.")
    reward_source: str | None
    normaliser: Normaliser | None
    rewards: RewardFigures | None
    prompt_characters: Spread | None
    response_characters: Spread | None
    run_id: uuid.UUID | None
    created_at: dt.datetime


class ImportReport(BaseModel):
    """What an import did with every row it read: read = rows + sum(cleaned) + bad_rows."""

    dataset: DatasetOut
    format: str
    columns: dict[str, str] = Field(description="Field -> the column it was taken from.")
    form: Literal["columns", "transcripts", "dialogues"]
    layouts: list[str] = Field(default=[], description="Layouts of other tools that were recognised and converted.")
    read: int
    rows: int
    cleaned: dict[str, int] = Field(description="Dropped rows by cleaning rule.")
    bad_rows: int
    bad_counts: dict[str, int] = Field(description="Bad rows by reason.")
    bad: list[BadRowReport] = Field(description="The first 1,000 bad rows.")
    unused: list[UnusedColumn] = Field(description="Columns of the first rows that feed no field.")


class RowMarks(BaseModel):
    """What people noted on a row. `change`: what the next version does to it."""

    flagged: bool = False
    comments: int = 0
    change: Literal["edit", "remove"] | None = None


class ExcerptPart(BaseModel):
    text: str
    hit: bool


class Excerpt(BaseModel):
    """A text of the row around the first hit of a search. `turn`: which one of the prompt."""

    field: str
    turn: int | None
    parts: list[ExcerptPart]


class SampleOut(BaseModel):
    """`cut`: the row is so large that its texts and lists end early here; `whole=true` has all of them."""

    row: int
    split: Literal["train", "held_out"]
    half: Literal["a", "b"]
    sample: dict[str, Any]
    extra: dict[str, Any] | None
    reward: float | None = None
    cut: bool = False
    marks: RowMarks | None = None
    excerpts: list[Excerpt] | None = Field(default=None, description="Where it matches `q`, text by text.")


class RewardOut(BaseModel):
    row: int
    value: float


class RewardSourceOut(BaseModel):
    """A source and what it gave to the rows of one dataset."""

    id: uuid.UUID
    name: str
    kind: Literal["model", "weighted", "imported"]
    model_id: uuid.UUID | None
    weights: dict[str, float] | None
    parts: list[RewardPart] | None = Field(
        default=None, description="How each reward of a sum of z-scores was normalised and weighted."
    )
    figures: RewardFigures


class Bin(BaseModel):
    """`low` belongs to the bin, `high` to the next one; the last bin has both."""

    low: float
    high: float
    count: int


class RewardHistogram(RewardFigures):
    """Raw rewards of one source over all rows of a dataset."""

    source: str
    bins: list[Bin]


class WeightedSourceIn(BaseModel):
    """A weighted sum of reward sources that each graded every row of the dataset."""

    name: str
    weights: dict[str, float] = Field(min_length=1, description="Reward source -> weight.")
    scale: Literal["zscore", "raw"] = Field(
        "zscore", description="Units that are weighted: z-scores over the rows, or the rewards as they were given."
    )


class LabelledIn(BaseModel):
    """Pins one reward source's rewards as a `labelled` dataset."""

    name: str
    source: str


class UnusedColumn(BaseModel):
    """A column that feeds no field. With `kind` and `field`: what it looks like, and could be mapped to."""

    name: str
    kept: bool = Field(description="It is kept with each row and exported, but not used for training.")
    kind: SampleKind | None = None
    field: str | None = None

    @property
    def words(self) -> str:
        fate = "kept with each row" if self.kept else "left out"
        if self.field is None:
            return fate
        options = f"--kind {self.kind} --map {self.field}={self.name}"
        return f"{fate}; to use it as the {self.field} of {self.kind}: {options}"
