"""What the API sees of edits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_Row = Annotated[int, Field(ge=0, lt=2**31)]
Rows = Annotated[list[_Row], Field(default=[], max_length=1000)]


class EditCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    drop: Annotated[Rows, Field(description="Rows to leave out.")]
    flip: Annotated[
        Rows,
        Field(
            description="Rows whose sides are swapped, or whose thumb is inverted. Their margins are removed. At most "
            "one of them may be held out."
        ),
    ]
    name: Annotated[str | None, Field(description="Name of the new version. Null: DATASET-edited-N.")] = None

    @model_validator(mode="after")
    def _apart(self) -> EditCreate:
        if not self.drop and not self.flip:
            raise ValueError("names no rows: list rows to `drop` or to `flip`")
        if both := sorted(set(self.drop) & set(self.flip)):
            raise ValueError(f"row {both[0]} is both to be dropped and to be flipped")
        return self


class EditOrigin(BaseModel):
    """The origin of an edited dataset, as stored. Rows are those of the dataset that was edited."""

    type: Literal["edit"] = "edit"
    of: str
    of_id: str
    read: int
    dropped: dict[str, int]
    flipped: int
    flipped_rows: list[int]
    edited: int = 0
    edited_rows: list[int] = []
    actor: str
