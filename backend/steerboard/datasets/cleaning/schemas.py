"""What the API sees of cleaning."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.datasets.cleaning.rules import Reason, Rule
from steerboard.datasets.schemas import SampleOut
from steerboard_statistics.texts.near_duplicates import LEAST_SIMILARITY, SIMILARITY

_WORKFLOW = {"source": "RLHF Workflow, arXiv 2405.07863, sec. 2.1"}
_LEE = {"source": "arXiv 2107.06499, app. A: word 5-grams, Jaccard similarity of 0.8."}
_PALM = {"source": "arXiv 2204.02311, sec. 8: 8-grams, at least 70% of them."}


class CleaningRules(BaseModel):
    """One switch a rule; a row is dropped by the first that fits, in this order."""

    model_config = ConfigDict(extra="forbid")

    empty_round: Annotated[
        bool,
        Field(description="Drop pairs with a turn or an answer that has no visible text.", json_schema_extra=_WORKFLOW),
    ] = True
    wrong_roles: Annotated[
        bool,
        Field(
            description="Drop pairs whose prompt is not user and assistant in turns, after at most one system turn.",
            json_schema_extra=_WORKFLOW,
        ),
    ] = True
    identical_sides: Annotated[
        bool, Field(description="Drop pairs whose answers are the same.", json_schema_extra=_WORKFLOW)
    ] = True
    min_margin: Annotated[
        float | None,
        Field(
            allow_inf_nan=False,
            description="Drop pairs with a smaller margin; those without a margin are kept. Null: the rule is off.",
            json_schema_extra=_WORKFLOW,
        ),
    ] = None
    evaluation_overlap: Annotated[
        bool,
        Field(
            description="Drop training rows whose prompt occurs, exactly or nearly, in an evaluation or a prompt set.",
            json_schema_extra=_PALM,
        ),
    ] = True
    evaluations: Annotated[
        list[str] | None,
        Field(
            max_length=100,
            description="Evaluations and prompt sets by name. Null: all of the project, "
            "except the evaluation whose rankings and verdicts the pairs were made from.",
        ),
    ] = None
    contradiction: Annotated[
        bool,
        Field(
            description="Where the same two answers to a prompt are preferred both ways, keep the more frequent "
            "preference; drop all of them where both are equally frequent."
        ),
    ] = True
    duplicate: Annotated[bool, Field(description="Keep the first of equal pairs; margins and other columns apart.")] = (
        True
    )
    near_duplicate: Annotated[
        bool,
        Field(
            description="Keep the first of pairs whose prompt, chosen and rejected answer are each nearly the same.",
            json_schema_extra=_LEE,
        ),
    ] = True
    similarity: Annotated[
        float,
        Field(
            ge=LEAST_SIMILARITY,
            le=1,
            description="Jaccard similarity of word 5-grams from which texts are nearly the same.",
            json_schema_extra=_LEE,
        ),
    ] = SIMILARITY


class CleaningPreviewIn(CleaningRules):
    examples: Annotated[int, Field(ge=0, le=20, description="Examples for each rule, at most.")] = 5


class CleaningCreate(CleaningRules):
    name: Annotated[
        str | None, Field(description="Name of the new dataset. Null: DATASET-clean-N, N counting its versions.")
    ] = None


class EvaluationMatch(BaseModel):
    """The prompt of an evaluation or prompt set that occurs in a row. `overlap`: share of its n-grams."""

    type: Literal["evaluation", "prompt_set"]
    name: str
    position: int
    match: Literal["exact", "near"]
    overlap: float


class Dropped(BaseModel):
    """Why a row is dropped. `of_row`: the row that it repeats or contradicts. `similarity`: of a near duplicate."""

    row: int
    rule: Reason
    of_row: int | None = None
    similarity: float | None = None
    evaluation: EvaluationMatch | None = None


class DroppedRow(Dropped):
    """A row with what it holds. `of_sample`: what `of_row` holds, in examples only."""

    sample: SampleOut
    of_sample: SampleOut | None = None


class RuleCount(BaseModel):
    """`on`: whether the rule is switched on. `examples`: the first rows that it drops."""

    rule: Rule
    title: str
    on: bool
    rows: int
    examples: list[DroppedRow]


class CleaningPreview(BaseModel):
    """What cleaning would do: rows = kept + the rows of all rules. `checked_prompts`: distinct prompts of evaluations
    that were looked for."""

    rows: int
    kept: int
    kept_held_out: int
    checked_prompts: int
    rules: list[RuleCount]


class CleaningOrigin(BaseModel):
    """The origin of a cleaned dataset, as stored."""

    type: Literal["cleaning"] = "cleaning"
    of: str
    of_id: str
    rules: dict[str, Any]
    read: int
    dropped: dict[str, int]
    checked_prompts: int
    actor: str
