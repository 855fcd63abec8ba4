"""What a stage reads: files and folders that `stage.json` names."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import SampleKind


class DatasetInput(BaseModel):
    """A jsonl file, one sample a line with its kind's fields plus `row` (int), `split` and `half`.

    Labelled rows carry the raw `reward`; `normaliser` turns it into z. Several responses to one prompt have the same
    `group` (`samples.AnswerSample`).
    """

    type: Literal["dataset"] = "dataset"
    name: str
    path: str
    kind: SampleKind
    rows: int
    content_hash: str
    normaliser: Normaliser | None = None


class ModelInput(BaseModel):
    """A local folder that transformers loads, with `steerboard.json` in it."""

    type: Literal["model"] = "model"
    name: str
    path: str
    content_hash: str


class PromptsInput(BaseModel):
    """A jsonl file of an evaluation's prompts: `{position, category, messages, follow_ups}` by position."""

    type: Literal["prompts"] = "prompts"
    name: str
    path: str
    prompts: int


class ResponsesInput(BaseModel):
    """A jsonl file of responses to be scored: `{entrant, position, sample, prompt, response}`, where the prompt is
    everything before the last turn."""

    type: Literal["responses"] = "responses"
    name: str
    path: str
    responses: int


class ComparisonsInput(BaseModel):
    """A jsonl file of pairs to be compared: `{position, turn, a, b, prompt, responses}`, where `responses` are those of
    entrants `a` and `b`."""

    type: Literal["comparisons"] = "comparisons"
    name: str
    path: str
    comparisons: int


StageInput = Annotated[
    DatasetInput | ModelInput | PromptsInput | ResponsesInput | ComparisonsInput, Field(discriminator="type")
]
