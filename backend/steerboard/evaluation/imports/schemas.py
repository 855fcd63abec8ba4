"""The API's schemas for importing prompts, answers and judgments of other projects."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.datasets.schemas import BadRowReport, BadRows
from steerboard.evaluation.entrants.schemas import EntrantOut
from steerboard.evaluation.judges.schemas import JudgeOut
from steerboard.evaluation.unmatched import Unmatched
from steerboard_figures.formats.detection import AnswerFormat, JudgmentFormat


class AnswersForm(BaseModel):
    """The other form fields. `name`: of the entrant, for a file of one model; else they are named by model."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["auto"] | AnswerFormat = "auto"
    name: str | None = None
    family: str | None = Field(default=None, max_length=64, description="Known from the model's name when absent.")
    bad_rows: BadRows = "refuse"


class JudgmentsForm(BaseModel):
    """The other form fields. `model`: whose judgments to take of a file of several judges, or the judge's name
    where the file has none. `baseline`: the entrant that an Arena-Hard file does not name."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["auto"] | JudgmentFormat = "auto"
    name: str | None = None
    model: str | None = Field(default=None, max_length=200)
    family: str | None = Field(default=None, max_length=64)
    baseline: str | None = None
    add_entrants: bool = Field(
        default=False,
        description="Enter models that the evaluation does not have, with the answers that the file repeats, if any.",
    )
    bad_rows: BadRows = "refuse"


class AnswersImported(BaseModel):
    """`matched` answers are stored. `unmatched`: the first hundred of `unmatched_rows`. `duplicates`: answers that are
    there twice, of which the newest counts. `short`: answers with fewer turns than their prompt."""

    format: AnswerFormat
    entrants: list[EntrantOut]
    rows: int
    matched: int
    unmatched: list[Unmatched]
    unmatched_rows: int
    duplicates: int
    short: int
    skipped: list[BadRowReport]
    skipped_rows: int


class JudgmentsImported(BaseModel):
    """`rows` of the file gave `verdicts`, by status; `duplicates` of them are superseded by newer ones. `unmatched`:
    the first hundred of `unmatched_rows`. `entrants_added`: by name."""

    format: JudgmentFormat
    judge: JudgeOut
    rows: int
    verdicts: int
    ok: int
    unparsed: int
    refused: int
    errors: int
    duplicates: int
    unmatched: list[Unmatched]
    unmatched_rows: int
    entrants_added: list[str]
    skipped: list[BadRowReport]
    skipped_rows: int
