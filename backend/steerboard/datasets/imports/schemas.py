"""What the dashboard's import wizard sees."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from steerboard.datasets.imports.importer import ImportOptions
from steerboard.datasets.schemas import BadRowReport, BadRows, UnusedColumn
from steerboard_contracts.attribute_names import NAME_PATTERN
from steerboard_contracts.samples import SampleKind

ImportState = Literal["draft", "validating", "validated", "importing", "succeeded", "failed", "cancelled"]
Form = Literal["columns", "transcripts", "dialogues"]
# PostgreSQL keeps no NUL in a text.
FieldName = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=rf"^[a-z_]+(\.{NAME_PATTERN})?$")]
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]


class ImportFormat(BaseModel):
    name: str
    about: str
    endings: list[str] = Field(description="Endings of file names; a file is recognised by its content.")


class ImportLayout(BaseModel):
    """A layout of another tool that is recognised within the formats."""

    name: str
    about: str


class ImportFormats(BaseModel):
    """What files are read."""

    words: str = Field(description="All formats in a sentence.")
    endings: list[str] = Field(description="Endings of all formats, and of gzipped files.")
    formats: list[ImportFormat]
    layouts: list[ImportLayout]


class UploadCreate(BaseModel):
    """A file that comes in parts."""

    model_config = ConfigDict(extra="forbid")

    file_name: Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f/\\]+$")]
    size: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class UploadPart(BaseModel):
    """Has no form field besides its file."""


class UploadOut(BaseModel):
    """Every part has `part_size` bytes, except the last one."""

    id: uuid.UUID
    file_name: str
    size: int
    part_size: int
    missing: list[int] = Field(description="Numbers of the parts that have not come yet, from 0.")


class ImportColumn(BaseModel):
    name: str
    types: list[str] = Field(description="text, int, float, bool, messages, list, object; null where it is absent.")
    examples: list[str] = Field(description="Up to three values of the first rows, shortened.")


class ImportField(BaseModel):
    name: str
    required: bool
    about: str


class ImportKind(BaseModel):
    """What a dataset of this kind can take from a file."""

    kind: SampleKind
    fields: list[ImportField]


class ImportOptionsOut(BaseModel):
    """The person's choices. Fields that `mapping` does not name are recognised by their columns."""

    kind: SampleKind | None = None
    mapping: dict[str, str | None] = Field(
        default={},
        description="Field -> column; null leaves the field out even where a column would fit. An attribute that has a "
        "column of its own is the field `attributes.NAME`.",
    )
    bad_rows: BadRows = "refuse"
    clean: bool = True
    min_margin: float | None = None

    @property
    def options(self) -> ImportOptions:
        columns = {field: column for field, column in self.mapping.items() if column is not None}
        without = frozenset(self.mapping) - columns.keys()
        return ImportOptions(self.kind, columns, self.bad_rows, self.clean, self.min_margin, without=without)


class ImportChange(BaseModel):
    """Only what is sent changes."""

    model_config = ConfigDict(extra="forbid")

    name: ColumnName | None = None
    kind: SampleKind | None = Field(default=None, description="null: recognise it by the columns.")
    mapping: dict[FieldName, ColumnName | None] | None = Field(
        default=None, max_length=60, description="Replaces the mapping as a whole; see `options.mapping`."
    )
    bad_rows: BadRows | None = None
    clean: bool | None = None
    min_margin: Annotated[float, Field(allow_inf_nan=False)] | None = None


class ImportMapping(BaseModel):
    """Which column feeds which field."""

    kind: SampleKind
    mapping: dict[str, str]
    form: Form
    unused: list[UnusedColumn] = Field(default=[], description="Columns of the first rows that feed no field.")
    layouts: list[str] = Field(default=[], description="Layouts of other tools that are converted.")


class ImportProblem(BaseModel):
    """Why the mapping cannot be used, or why the import failed."""

    code: str
    title: str
    detail: str
    hint: str | None = None


class ImportProgress(BaseModel):
    """`bytes` of `total_bytes` were read as `read` rows, of which `rows` can be stored."""

    read: int
    bytes: int
    total_bytes: int
    rows: int


class ImportCheck(BaseModel):
    """What happened to every row: read = rows + sum(cleaned) + bad_rows."""

    read: int
    rows: int
    cleaned: dict[str, int] = Field(description="Dropped rows by cleaning rule.")
    bad_rows: int
    bad_counts: dict[str, int] = Field(description="Bad rows by code.")
    bad_reasons: dict[str, int] = Field(description="Bad rows by reason, figures in it replaced by N.")
    bad: list[BadRowReport] = Field(description="The first 100 bad rows; the report download has all.")
    columns: dict[str, str] = Field(description="Field -> the column it was taken from.")
    kind: SampleKind
    form: Form
    unit: Literal["line", "row"] = Field(description="What the numbers of bad rows count.")


class ImportOut(BaseModel):
    id: uuid.UUID
    name: str = Field(description="What the dataset will be called.")
    file_name: str
    size: int = Field(description="Bytes, as stored.")
    format: str
    hub: str | None = Field(description="The hub dataset, pinned to a commit.")
    state: ImportState
    columns: list[ImportColumn]
    kinds: list[ImportKind]
    options: ImportOptionsOut
    detected: ImportMapping | None = Field(description="What the columns look like with nothing chosen.")
    effective: ImportMapping | None = Field(description="What applies under the options; null where they do not fit.")
    problem: ImportProblem | None
    progress: ImportProgress | None
    report: ImportCheck | None
    dataset_id: uuid.UUID | None
    file_gone: bool = Field(description="The file was removed, 30 days after the last change or after the import.")
    created_by: str
    created_at: dt.datetime
    updated_at: dt.datetime


class PreviewProblem(BaseModel):
    code: str
    reason: str


class PreviewRow(BaseModel):
    """Exactly one of `sample`, `problem` and `dropped` is set. Long texts are shortened."""

    line: int
    sample: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None
    problem: PreviewProblem | None = None
    dropped: str | None = Field(default=None, description="The cleaning rule that drops this row.")


class ImportPreview(BaseModel):
    rows: list[PreviewRow]
    unit: Literal["line", "row"]
