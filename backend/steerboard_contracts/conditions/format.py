"""What a policy can be asked for, and how a condition is written into its prompt: clamp, quantise, fixed decimals."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from steerboard_contracts.attribute_names import MOST_ATTRIBUTES, SCORE, AttributeName
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.score_words import Writing, word_borders
from steerboard_contracts.errors import BadInput
from steerboard_contracts.samples import Finite

SCORE_MARKER = f"<{SCORE}>"


class Attribute(BaseModel):
    """One attribute: its range, the step to which it is rounded, the decimals with which it is written, and the value
    that a policy is asked for by default; without one it is left out unless asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: AttributeName
    low: Finite = -5.0
    high: Finite = 5.0
    step: Annotated[Finite, Field(gt=0)] = 0.1
    decimals: Annotated[int, Field(ge=0, le=6)] = 2
    default: Finite | None = None

    @model_validator(mode="after")
    def _range_holds_something(self) -> Attribute:
        if self.low >= self.high:
            raise ValueError(f"the range of {self.name} is empty: {self.low:g} to {self.high:g}")
        return self

    def value(self, number: float) -> float:
        """The value that is really written: clamped to the range and rounded to the nearest step."""
        if not math.isfinite(number):
            raise BadInput(f"{self.name} must be a finite number, got {number}", code="non_finite_score")
        clamped = min(self.high, max(self.low, number))
        return round(clamped / self.step) * self.step

    def text(self, number: float) -> str:
        written = f"{self.value(number):.{self.decimals}f}"
        return written.removeprefix("-") if float(written) == 0 else written


def _distinct(attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    names = [attribute.name for attribute in attributes]
    if len(set(names)) < len(names):
        raise ValueError("two attributes have one name")
    return attributes


class ConditionFormat(BaseModel):
    """The attributes of a policy, in the order in which its prompt has them.

    A lone `rm_score` is written as the paper has it, `<rm_score> 5.00`, or as a word or its token; others as
    `helpfulness:4,verbosity:2`. What travels is the number in any style (`text`); only rendering makes `opening` and
    `request` of it. No `writing`: as the paper has it, and as policies of former releases were asked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    attributes: Annotated[
        tuple[Attribute, ...], Field(min_length=1, max_length=MOST_ATTRIBUTES), AfterValidator(_distinct)
    ]
    dropped: Annotated[Finite, Field(ge=0, lt=1, description="Share of the rows learned without a condition.")] = 0.0
    writing: Writing | None = Field(default=None, exclude_if=lambda writing: writing is None)

    @model_validator(mode="after")
    def _words_are_of_a_score(self) -> ConditionFormat:
        if self.how.style != "digits":
            if not self.only_score:
                raise ValueError(f"only a lone {SCORE} is written in {self.how.style}")
            _ = self.word_borders
        return self

    @classmethod
    def of_score(
        cls, limit: float = 5.0, step: float = 0.1, default: float | None = 5.0, **writing: Any
    ) -> ConditionFormat:
        """The paper's, unless `writing` has another style or place."""
        score = Attribute(name=SCORE, low=-limit, high=limit, step=step, default=default)
        return cls(attributes=(score,), writing=Writing(**writing) if writing else None)

    @property
    def how(self) -> Writing:
        return self.writing or Writing()

    @property
    def only_score(self) -> bool:
        return len(self.attributes) == 1 and self.attributes[0].name == SCORE

    @property
    def default(self) -> Condition:
        """What the policy is asked for by default; may be nothing."""
        return Condition.of(
            {attribute.name: attribute.default for attribute in self.attributes if attribute.default is not None}
        )

    def resolve(self, condition: Condition | None) -> Condition:
        """What a policy of this format is asked for, in its order: its default for None. A plain number
        is for the only attribute, whatever its name. Raises `BadInput` (`unknown_attribute`)."""
        if condition is None:
            return self.default
        values = condition.values
        names = [attribute.name for attribute in self.attributes]
        if condition.score is not None and len(names) == 1:
            values = {names[0]: condition.score}
        unknown = next((name for name in values if name not in names), None)
        if unknown is not None:
            what = f"asked for {condition}, " if unknown == SCORE else f"asked for {unknown}, "
            raise BadInput(
                f"{what}which this policy does not know",
                code="unknown_attribute",
                hint=f"It can be asked for {', '.join(names)}, such as {names[0]}:{self.attributes[0].high:g}.",
            )
        return Condition.of({name: values[name] for name in names if name in values})

    def opposite(self, condition: Condition) -> Condition:
        """A resolved condition with each value mirrored within its range: `low + high - value`, so of a score its
        negative."""
        return Condition.of(
            {
                attribute.name: attribute.low + attribute.high - attribute.value(condition.values[attribute.name])
                for attribute in self._in(condition)
            }
        )

    def rounds(self, condition: Condition) -> bool:
        """Whether a resolved condition is written with other values than asked for."""
        return any(
            abs(attribute.value(condition.values[attribute.name]) - condition.values[attribute.name]) > 1e-9
            for attribute in self._in(condition)
        )

    def text(self, condition: Condition) -> str:
        """The text of a resolved condition: `5.00`, `helpfulness:4,verbosity:2`, or nothing for the empty one."""
        if self.only_score:
            return "".join(attribute.text(condition.values[attribute.name]) for attribute in self._in(condition))
        return ",".join(
            f"{attribute.name}:{attribute.text(condition.values[attribute.name])}" for attribute in self._in(condition)
        )

    def opening(self, text: str) -> str:
        """How a written condition (see `text`) opens an answer: `<rm_score> 5.00`, `wonderful:`, or nothing."""
        if not text or self.how.place == "request":
            return ""
        return condition_prompt(text).removeprefix(" ") if self.how.style == "digits" else f"{self.sign(text)}:"

    def request(self, text: str) -> str:
        """How it ends the last user turn: `<rm_score> 5.00`, `The answer is wonderful.`, or nothing."""
        if not text or self.how.place == "answer":
            return ""
        if self.how.style == "digits":
            return condition_prompt(text).removeprefix(" ")
        return self.how.sentence.replace("{}", self.sign(text))

    def word(self, text: str) -> str:
        """The word for a written score; of style tokens, the one that its token began as."""
        return self.how.words[self._part(text)]

    def sign(self, text: str) -> str:
        """What is written for a written score: its word, or the token in its place."""
        return self.how.signs[self._part(text)]

    def _part(self, text: str) -> int:
        return bisect_right(self.word_borders, float(text))

    @property
    def word_borders(self) -> tuple[float, ...]:
        """The scores from which on the next word is written."""
        score = self.attributes[0]
        return word_borders(score.low, score.high, max(score.step, 10.0**-score.decimals), self.how.words)

    def _in(self, condition: Condition) -> list[Attribute]:
        return [attribute for attribute in self.attributes if attribute.name in condition.values]


def condition_prompt(text: str) -> str:
    """A written condition as it appears after the assistant marker: ` <rm_score> 5.00`, ` helpfulness:4`.

    Only a lone score is written without its name, and gets the paper's marker.
    """
    return f" {text}" if ":" in text else f" {SCORE_MARKER} {text}"


def template_arguments(text: str) -> dict[str, str]:
    """What a chat template of ours takes for a written condition; see `chat_templates`."""
    if not text:
        return {"rm_score": "", "condition": ""}
    return {"condition": text} if ":" in text else {"rm_score": text}
