"""The API's schemas for making preference datasets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class PreferenceSource(BaseModel):
    """A campaign or a judge, by name or id."""

    model_config = ConfigDict(extra="forbid")

    campaign: str | None = None
    judge: str | None = None

    @model_validator(mode="after")
    def _names_one(self) -> PreferenceSource:
        if (self.campaign is None) == (self.judge is None):
            raise ValueError("name either a campaign or a judge")
        return self


class PreferencesChoice(BaseModel):
    """Which answers are compared. `all`: every pair of different ranks; `best_worst`: the best against the worst."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    sources: Annotated[
        list[PreferenceSource] | None,
        Field(
            alias="from",
            min_length=1,
            max_length=50,
            description="Null: every campaign with rankings by this criterion, and every judge with verdicts, as far "
            "as they count in the report. A judge that is named is taken as it is.",
        ),
    ] = None
    pairs: Literal["all", "best_worst"] = "all"
    criterion: Annotated[str | None, Field(description="Whose rankings to take; null: the overall ones.")] = None
    votes: Annotated[
        Literal["each", "majority"],
        Field(
            description="`each`: a row for every annotator and judge, contradicting ones too; `majority`: one row for "
            "two answers, chosen by most of them."
        ),
    ] = "each"
    min_agreement: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Leave out pairs whose chosen answer has a smaller share of the votes; ties count half.",
        ),
    ] = None


class PreferencesCreate(PreferencesChoice):
    """`by_prompt`: a pair of a held-out prompt is held out, so no training learns from it. `train`: all pairs are for
    training; models that learn from them have then seen these prompts, and evaluations on them report it."""

    split: Literal["by_prompt", "train"] = "by_prompt"
    name: Annotated[
        str | None, Field(description="A version number is appended: NAME-1, NAME-2. Null: EVALUATION-preferences.")
    ] = None


class PreferencesPreview(BaseModel):
    """How many pairs would become rows, and how many of them the project's split holds out. `left_out`: pairs that
    do not become rows, by reason: `no_answer`, `empty`, `identical`, `disagreement`; and of judges that no one has
    named `judge_not_valid`, `entrant_not_valid` and `one_order` (only one of two orders is usable). `left_out_judges`:
    those that are not valid, with the reason. `compared`: two answers to one prompt that anyone voted on; `contested`:
    those on which votes differ. `agreement`: the mean share of votes for the chosen answer; null without pairs."""

    pairs: int
    held_out_pairs: int
    prompts: int
    held_out_prompts: int
    left_out: dict[str, int]
    left_out_judges: dict[str, str] = {}
    sources: list[str]
    compared: int
    contested: int
    agreement: float | None
