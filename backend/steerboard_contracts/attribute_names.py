"""Names of attributes, which samples have values of and conditions ask for."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

# The attribute of the reward prompt: Eq. 6 of arXiv 2308.12050.
SCORE = "rm_score"
MOST_ATTRIBUTES = 32
NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_.-]{0,62}"
AttributeName = Annotated[str, StringConstraints(pattern=f"^{NAME_PATTERN}$")]
