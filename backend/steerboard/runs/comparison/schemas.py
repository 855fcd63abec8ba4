"""What the API of shared comparisons of runs takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steerboard.sharing.schemas import ShareLinkCreate

MOST_RUNS, MOST_METRICS = 12, 24
_Name = Annotated[str, Field(min_length=1, max_length=300)]


class RunsShareCreate(ShareLinkCreate):
    """`runs` by id or name. `metrics`: which curves the page has; by default the first ones of their methods."""

    runs: Annotated[list[_Name], Field(min_length=1, max_length=MOST_RUNS)]
    metrics: Annotated[tuple[_Name, ...], Field(max_length=MOST_METRICS)] = ()
