"""The base of all schemas."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Schema(BaseModel):
    """Fields that a newer server adds are kept, and a schema is built when it is first used: there are hundreds."""

    model_config = ConfigDict(defer_build=True, extra="allow")
