"""The API's schemas of a dataset's own answers as entrants."""

from __future__ import annotations

from pydantic import BaseModel


class DatasetEntrant(BaseModel):
    """`prompts`: how many have an answer of this entrant."""

    name: str
    prompts: int


class DatasetAnswers(BaseModel):
    """What an evaluation of the dataset's own answers has. `prompts`: distinct ones with an answer, at most 20,000.
    `evaluation`: the one that was made of them before; null where there is none."""

    entrants: list[DatasetEntrant]
    prompts: int
    evaluation: str | None
