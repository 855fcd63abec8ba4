"""The API's schemas of comparisons and control curves."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.conditions.condition import Condition, varied
from steerboard_contracts.decoding import GuidanceField
from steerboard_contracts.fields import NonNegative
from steerboard_contracts.samples import Finite
from steerboard_contracts.turns import Message, PromptMessages

AnswerState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
CurveSplit = Literal["held_out", "train", "all"]

_PROMPT_CHARACTERS = 200_000
# What a number of JSON can hold exactly everywhere.
_SEED = Field(ge=-(2**53), le=2**53)
Ref = Annotated[str, Field(min_length=1, max_length=300)]
Prompt = Annotated[
    PromptMessages,
    # Only for the schema: a plain string is one user turn.
    BeforeValidator(lambda prompt: prompt, json_schema_input_type=str | list[Message]),
]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PlaygroundDecoding(_In):
    """The `Decoding` of a run, for one answer. Temperature 0 is greedy."""

    temperature: Annotated[NonNegative, Field(le=100)] = 0.0
    top_p: Annotated[Finite, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=1_000_000, description="0: all tokens.")] = 0
    max_new_tokens: Annotated[
        int | None, Field(ge=1, le=100_000, description="By default 256, or half of a smaller model's window.")
    ] = None
    stop: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(max_length=16, description="Texts that end an answer, and are not part of it."),
    ] = []
    guidance: GuidanceField = 1.0


class ColumnIn(_In):
    """`model` or `endpoint` by name or id, one of the two. `score`: a number, or of several attributes a text such as
    `helpfulness:4,verbosity:2`, the empty one for none of them. Without it a policy gets its default."""

    model: Ref | None = None
    endpoint: Ref | None = None
    score: Condition | None = None
    decoding: PlaygroundDecoding = PlaygroundDecoding()

    @model_validator(mode="after")
    def _one_source(self) -> ColumnIn:
        if (self.model is None) == (self.endpoint is None):
            raise ValueError("name either a model or an endpoint")
        return self


class ComparisonIn(_In):
    """`prompt`: the user's message, or a conversation that ends with a user turn."""

    prompt: Prompt
    columns: Annotated[list[ColumnIn], Field(min_length=1, max_length=8)]
    reward: Annotated[Ref | None, Field(description="A reward model that scores the answers.")] = None
    seed: Annotated[int, _SEED] = 0

    @model_validator(mode="after")
    def _short_enough(self) -> ComparisonIn:
        if sum(len(message.content) for message in self.prompt) > _PROMPT_CHARACTERS:
            raise ValueError(f"the prompt has more than {_PROMPT_CHARACTERS} characters")
        return self


class Named(BaseModel):
    id: uuid.UUID
    name: str


class AnswerProblem(BaseModel):
    """Why an answer or a curve failed; `code` as in problem documents."""

    code: str
    title: str
    detail: str
    hint: str | None = None


class AnswerBase(BaseModel):
    """One column. `reward` is raw; `reward_z` is in units of the policy's own normaliser, and null where that came
    from another reward model. Seconds count from the start of decoding, not the loading before it."""

    place: int
    model: Named | None
    endpoint: Named | None
    name: str = Field(description="What the model or endpoint was called; it stays when that is deleted.")
    score: Condition | None
    score_text: str | None = Field(
        description="The score or condition as it is really asked for: clamped and rounded; null for none."
    )
    decoding: PlaygroundDecoding
    state: AnswerState
    waits_for: str | None = Field(description="For people: what an open answer waits for.")
    tokens: int = Field(description="Tokens of the text so far; about, until the answer has ended.")
    finished: bool = Field(description="The model ended it; false: a limit cut it, or it is not complete.")
    reward: float | None
    reward_z: float | None
    first_token_seconds: float | None
    seconds: float | None
    reused: bool = Field(description="Copied from an equal answer to an earlier comparison.")
    error: AnswerProblem | None


class AnswerOut(AnswerBase):
    text: str


class AnswerChange(AnswerBase):
    """Data of an `answer` event of a comparison's stream. The text is what was known up to `at`, then `text`."""

    at: int = Field(description="Offset in UTF-16 code units, as JavaScript counts characters.")
    text: str = Field(description="The text from there on; it replaces any earlier text.")


class ComparisonOut(BaseModel):
    id: uuid.UUID
    prompt: list[Message]
    seed: int
    reward_model: Named | None
    created_by: str
    created_at: dt.datetime
    ended_at: dt.datetime | None = Field(description="When the last answer ended; null while one is open.")
    columns: list[AnswerOut]


class CurveIn(_In):
    """`scores` differ in one attribute. Without `data`: the prompts of the dataset that the model was trained on."""

    model: Ref
    reward: Ref
    data: Ref | None = None
    split: CurveSplit = "held_out"
    scores: Annotated[list[Condition], Field(min_length=2, max_length=21)] = [
        Condition.of({SCORE: score}) for score in (-5.0, -2.5, 0.0, 2.5, 5.0)
    ]
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many distinct prompts, drawn by seed.")] = 32
    decoding: PlaygroundDecoding = PlaygroundDecoding()
    seed: Annotated[int, _SEED] = 0

    @model_validator(mode="after")
    def _along_one_attribute(self) -> CurveIn:
        different = list(dict.fromkeys(self.scores))
        along = varied(different)
        if along is None:
            raise ValueError("scores: give at least two different ones, which differ in one attribute")
        self.scores = [different[place] for place in sorted(range(len(along)), key=along.__getitem__)]
        return self


class CurvePoint(BaseModel):
    """Achieved rewards over `n` prompts: the mean with its bootstrap 95% interval over prompts, raw, and in z units
    of the policy's normaliser where that came from the same reward model."""

    score: Condition
    score_text: str
    n: int
    mean: float
    low: float
    high: float
    mean_z: float | None
    low_z: float | None
    high_z: float | None
    mean_tokens: float


class CurveOut(BaseModel):
    """`done` of `total` answers are written."""

    id: uuid.UUID
    model: Named
    reward_model: Named
    dataset: Named
    split: CurveSplit
    scores: list[Condition]
    limit: int
    decoding: PlaygroundDecoding
    seed: int
    state: AnswerState
    waits_for: str | None
    done: int
    total: int
    points: list[CurvePoint]
    spearman: float | None = Field(description="Requested scores against mean rewards; null under three points.")
    error: AnswerProblem | None
    created_at: dt.datetime
