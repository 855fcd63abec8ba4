"""The six sample kinds. The importer and the training stages validate with these very classes."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from steerboard_contracts.attribute_names import MOST_ATTRIBUTES, SCORE, AttributeName
from steerboard_contracts.errors import BadRow, ErrorLocation
from steerboard_contracts.step_labels import StepLabels
from steerboard_contracts.tools import answer_parts
from steerboard_contracts.turns import AS_CALLS, AS_TEXT, Answer, AnswerMessage, SamplePrompt, TurnText
from steerboard_contracts.wording import counted

SampleKind = Literal["instructions", "preferences", "unpaired", "prompts", "labelled", "stepwise"]
Split = Literal["train", "held_out"]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("is not a finite number")
    return value


def _reward(value: float) -> float:
    if abs(value) > LARGEST_REWARD:
        raise ValueError(f"is larger than {LARGEST_REWARD:g}")
    return value


Finite = Annotated[float, AfterValidator(_finite)]
# Sums of squares, and figures between two rewards, stay finite.
LARGEST_REWARD = 1e100
Reward = Annotated[Finite, AfterValidator(_reward)]


def _grades(values: dict[str, float]) -> dict[str, float]:
    """The grades in the order of their names: what is stored as JSON forgets another one."""
    if not values:
        raise ValueError("has no values; leave the field out")
    if len(values) > MOST_ATTRIBUTES:
        raise ValueError(f"has more than {MOST_ATTRIBUTES} attributes")
    if SCORE in values:
        raise ValueError(f"`{SCORE}` is the reward of the row; give another attribute that name")
    return {name: values[name] + 0.0 for name in sorted(values)}  # no negative zero, which JSONB does not know


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is not a whole number")
    return value


def _no_truth_for_grade(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


Grade = Annotated[Reward, BeforeValidator(_no_truth_for_grade)]
Attributes = Annotated[dict[AttributeName, Grade], AfterValidator(_grades)]


# Numbers that JavaScript holds exactly.
Place = Annotated[int, BeforeValidator(_no_truth), Field(ge=0, lt=2**53)]


class Sample(BaseModel):
    """What every kind shares: a prompt, always a list of messages that ends with a user turn or a tool's result."""

    model_config = ConfigDict(extra="forbid")

    prompt: SamplePrompt


class PromptSample(Sample):
    reference: TurnText | None = None


class AnswerSample(Sample):
    """A response to its prompt, perhaps one of several.

    Rows of one dataset with the same `group` answer the same prompt: the row that was asked, so that two prompts of
    equal text are two groups. `candidate` counts a group's responses from 0; one that was empty leaves a gap.
    """

    group: Place | None = None
    candidate: Place | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> AnswerSample:
        if (self.group is None) != (self.candidate is None):
            given, missing = ("group", "candidate") if self.candidate is None else ("candidate", "group")
            raise ValueError(f"has a {given} without a {missing}")
        return self


def _parts(answer: str | AnswerMessage) -> tuple[str, str]:
    return answer_parts(answer if isinstance(answer, str) else answer.model_dump())


class InstructionSample(AnswerSample):
    """`source` names the dataset a mixture took the row from; absent in plain instruction files."""

    response: Answer
    source: TurnText | None = None


class PreferenceSample(Sample):
    """`source` is where a pair is from, such as a benchmark's subset."""

    chosen: Answer
    rejected: Answer
    margin: Finite | None = None
    source: TurnText | None = None

    @property
    def equal_sides(self) -> bool:
        """Whether texts, without the space around them, and calls are the same."""
        return _parts(self.chosen) == _parts(self.rejected)


class UnpairedSample(AnswerSample):
    response: Answer
    desirable: bool


class LabelledSample(AnswerSample):
    """`reward` is the raw value of the pinned reward source; z-scores come from the dataset's normaliser.

    `attributes`: grades of the response by name, such as its verbosity; one that no one gave is absent. A row has a
    reward, attributes, or both. `item` is a benchmark's own name of the prompt.
    """

    response: Answer
    source: TurnText
    item: TurnText | None = None
    attributes: Attributes | None = None
    reward: Reward | None = None

    @model_validator(mode="after")
    def _graded(self) -> LabelledSample:
        if self.reward is None and self.attributes is None:
            raise ValueError("needs a `reward`, or `attributes`")
        return self

    @model_validator(mode="before")
    @classmethod
    def _default_source(cls, value: Any) -> Any:
        return {**value, "source": "imported"} if isinstance(value, dict) and value.get("source") is None else value


class StepwiseSample(Sample):
    """An answer by its steps, each with a label: TRL's stepwise supervision."""

    completions: Annotated[list[TurnText], Field(min_length=1)]
    labels: StepLabels
    source: TurnText | None = None

    @field_validator("labels")
    @classmethod
    def _one_for_each_step(cls, labels: list[bool | float], info: ValidationInfo) -> list[bool | float]:
        steps = info.data.get("completions")
        if steps is not None and len(labels) != len(steps):
            raise ValueError(f"has {counted(len(labels), 'label')} for {counted(len(steps), 'step')}")
        return labels


SAMPLE_CLASSES: dict[SampleKind, type[Sample]] = {
    "instructions": InstructionSample,
    "preferences": PreferenceSample,
    "unpaired": UnpairedSample,
    "prompts": PromptSample,
    "labelled": LabelledSample,
    "stepwise": StepwiseSample,
}
# The answers of a sample, of whichever kind.
ANSWERS = ("response", "chosen", "rejected")
# Which response to its prompt a row is: fields that come in pairs or not at all.
GROUP_FIELDS = ("group", "candidate")
# Grades of a response, by name.
ATTRIBUTES = "attributes"


# Pydantic's types of errors, in words that follow the name of a field.
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this kind",
    "string_type": "is not a text",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "model_attributes_type": "is not an object",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing_size": "has too many digits",
    "literal_error": "is none of {expected}",
    "greater_than_equal": "is less than {ge}",
    "less_than": "is {lt} or more",
    "string_pattern_mismatch": "does not match {pattern}",
    "string_too_long": "has more than {max_length} characters",
    "too_short": "has fewer than {min_length}",
    "string_too_short": "has fewer than {min_length} characters",
}


def sample_faults(error: ValidationError) -> list[tuple[str, str]]:
    """What is wrong with which field: `("chosen", "is empty")`."""
    faults = []
    for problem in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in problem["loc"] if part not in (AS_TEXT, AS_CALLS)) or "row"
        words = _WORDS.get(problem["type"])
        context = problem.get("ctx", {})
        faults.append((field, words.format(**context) if words else problem["msg"].removeprefix("Value error, ")))
    return faults


def sample_problems(error: ValidationError) -> str:
    """A validation error as one line a person can act on: `chosen: is empty; margin: is not a finite number`."""
    return "; ".join(f"{field}: {words}" for field, words in sample_faults(error))


def validate_sample(kind: SampleKind, row: object, line: int) -> Sample:
    """Check one row. Raises `BadRow` that names the line and each field at fault."""
    try:
        return SAMPLE_CLASSES[kind].model_validate(row)
    except ValidationError as error:
        reason = sample_problems(error)
        raise BadRow(
            f"line {line} is not a valid {kind} sample: {reason}",
            errors=[ErrorLocation(location=f"line {line}", message=reason)],
        ) from error
