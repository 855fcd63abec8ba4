"""What callers of the API may ask of runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard_contracts.samples import Finite

Reference = Annotated[str, Field(min_length=1, max_length=200, description="A name or an id.")]


PoolName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]


class RunWork(BaseModel):
    """What a run of its own does. `inputs` name datasets and models: `{"model": "demo-1.dt"}`."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any]
    inputs: dict[str, Reference] = {}


class RowCheckIn(RunWork):
    """The rows that a training run would learn are to be tokenised by a worker of the pool."""

    pool: PoolName = "default"


class RunCreate(RunWork):
    """A run of its own, outside any pipeline. `inputs` name datasets and models: `{"model": "demo-1.dt"}`."""

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None
    pool: PoolName = "default"
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    reuse: bool = True


class RunClone(BaseModel):
    """The same run again with fields of its config and inputs changed. `config` is merged at its top level."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None
    config: dict[str, Any] = {}
    inputs: dict[str, Reference] = {}
    pool: Annotated[str | None, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")] = None
    reuse: bool = True


class RunChanges(BaseModel):
    """`config`: settings of the run, those that its `changeable` names, with their new values."""

    model_config = ConfigDict(extra="forbid")

    config: Annotated[dict[str, Finite], Field(min_length=1, max_length=20)]


class RunResume(BaseModel):
    """`config`: changes of how the work is cut up, such as a failed run's `error.fix.changes`."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] = {}


class RunPlace(BaseModel):
    """A waiting run's position. `place` is among the runs of the pool that have its priority."""

    model_config = ConfigDict(extra="forbid")

    priority: Annotated[int | None, Field(ge=-100, le=100)] = None
    place: Literal["first", "last"] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> RunPlace:
        if self.priority is None and self.place is None:
            raise ValueError("set either a priority or a place")
        return self
