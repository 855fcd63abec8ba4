"""What the run that trained an entrant's model found of the weights that it saved."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from steerboard.registry.tables import Model
from steerboard_contracts.conditional import CONDITION_GAIN
from steerboard_contracts.report.estimate import Estimate


class TrainingFacts(BaseModel):
    """`kept`: which evaluation they are of, where the best ones were kept; `step`: after so many steps."""

    kept: str | None = None
    step: int | None = Field(default=None, validation_alias=AliasChoices("kept_step", "steps"))
    gain: float | None = Field(default=None, validation_alias=CONDITION_GAIN)
    gain_low: float | None = Field(default=None, validation_alias=f"{CONDITION_GAIN}_low")
    gain_high: float | None = Field(default=None, validation_alias=f"{CONDITION_GAIN}_high")
    gain_prompts: int = Field(default=0, validation_alias="condition_gain_prompts")

    @property
    def condition_gain(self) -> Estimate | None:
        if self.gain is None:
            return None
        return Estimate(value=self.gain, low=self.gain_low, high=self.gain_high, n=self.gain_prompts)


def training_of(model: Model | None) -> TrainingFacts:
    """The facts by the model's summary, if it was made here. That came from a file, which may be anyone's: what cannot
    be read counts as nothing."""
    summary: Any = model.info.get("summary") if model is not None and model.run_id is not None else None
    try:
        return TrainingFacts.model_validate(summary if summary is not None else {})
    except ValidationError:
        return TrainingFacts()
