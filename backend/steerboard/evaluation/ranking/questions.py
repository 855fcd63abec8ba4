"""The questions that a campaign's owner asks about each item, and the replies to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from steerboard.evaluation.ranking.errors import BadReplies

QuestionKind = Annotated[
    Literal["one_choice", "several_choices", "text"],
    Field(description="`one_choice` or `several_choices` of the question's own, or free `text`."),
]
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Choice = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
MOST_QUESTIONS = 10
MOST_CHOICES = 20
MOST_CHARACTERS = 10_000
"""The most characters of a text."""


class Question(BaseModel):
    """A question about an item. `help`: what annotators read below the label; `choices`: 2 to 20 of a question of
    choices, none of one for a text."""

    model_config = ConfigDict(extra="forbid")

    label: Label
    help: Annotated[str, Field(max_length=2_000)] = ""
    kind: QuestionKind
    choices: Annotated[list[Choice], Field(max_length=MOST_CHOICES)] = []
    required: bool = True

    @model_validator(mode="after")
    def _choices_fit(self) -> Question:
        if self.kind == "text":
            if self.choices:
                raise ValueError("a question for a text has no choices")
        elif len(self.choices) < 2:
            raise ValueError("a question of choices needs at least two")
        if len({choice.casefold() for choice in self.choices}) < len(self.choices):
            raise ValueError("two choices are the same")
        return self


def all_different(questions: list[Question]) -> list[Question]:
    """Raises `ValueError` where two have the same label."""
    if len({question.label.casefold() for question in questions}) < len(questions):
        raise ValueError("two questions have the same label")
    return questions


def _bounded(replies: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
    for label, reply in replies.items():
        if isinstance(reply, str) and len(reply) > MOST_CHARACTERS:
            raise ValueError(f"the reply to {label[:200]!r} has more than {MOST_CHARACTERS:,} characters")
        if isinstance(reply, list) and (len(reply) > MOST_CHOICES or any(len(choice) > 200 for choice in reply)):
            raise ValueError(f"the reply to {label[:200]!r} has too many choices, or too long ones")
    return replies


# Bounds of the parts are no schema: clients get a plain mapping.
Replies = Annotated[
    dict[str, str | list[str]],
    Field(
        max_length=MOST_QUESTIONS,
        description="By the question's label: the choice, a list of choices, or a text. Questions without a reply are "
        "left out.",
    ),
    AfterValidator(_bounded),
]


def questions_of(stored: Sequence[Mapping[str, Any]]) -> list[Question]:
    """The questions of a campaign's column."""
    return [Question.model_validate(question) for question in stored]


def checked(given: Mapping[str, Any], questions: Sequence[Question]) -> dict[str, Any] | None:
    """The replies in the order of the questions, empty ones left out; None for a campaign that asks nothing.

    Raises `BadReplies` for a missing reply that is required, one to no question, and a choice that there is not.
    """
    known = [question.label for question in questions]
    unknown = [label for label in given if label not in known]
    if unknown:
        asked = ", ".join(known) or "none"
        raise BadReplies(f"there is no question {unknown[0]!r} in this campaign", hint=f"Its questions: {asked}.")
    replies = {question.label: _checked(given.get(question.label), question) for question in questions}
    missing = [question.label for question in questions if question.required and not replies[question.label]]
    if missing:
        raise BadReplies(f"there is no reply to {missing[0]!r}", hint="Give one, or skip the item.")
    return {label: reply for label, reply in replies.items() if reply} if questions else None


def _checked(reply: Any, question: Question) -> str | list[str]:
    """The reply; empty where there is none."""
    several = question.kind == "several_choices"
    if reply is None:
        return []
    if isinstance(reply, list) != several:
        wanted = "a list of choices" if several else "one choice" if question.kind == "one_choice" else "a text"
        raise BadReplies(f"the reply to {question.label!r} is not {wanted}", hint="See the campaign's questions.")
    if question.kind == "text":
        return str(reply).strip()
    chosen = [reply] if isinstance(reply, str) else list(reply)
    for choice in chosen:
        # No choice is no reply.
        if choice and choice not in question.choices:
            raise BadReplies(
                f"{choice!r} is no choice of {question.label!r}", hint=f"Its choices: {', '.join(question.choices)}."
            )
    in_order = [choice for choice in question.choices if choice in chosen]
    return in_order if several else "".join(in_order)


def choices_apart(one: Mapping[str, Any], other: Mapping[str, Any], questions: Sequence[Question]) -> float:
    """How far two annotators' choices are apart: the mean over the questions of choices that both replied to, from 0
    to 1. Of several choices: 1 less the share of all chosen ones that both chose (Jaccard)."""
    distances = [
        1 - alike(one[question.label], other[question.label])
        for question in questions
        if question.kind != "text" and question.label in one and question.label in other
    ]
    return sum(distances) / len(distances) if distances else 0.0


def alike(one: str | Sequence[str], other: str | Sequence[str]) -> float:
    """The share of the choices of either that both have."""
    first, second = ({reply} if isinstance(reply, str) else set(reply) for reply in (one, other))
    return len(first & second) / len(first | second)
