"""What marks hand to the domains above them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from steerboard.platform.hooks import Hook


@dataclass(frozen=True)
class Mention:
    """Someone named members of a project in a comment. `about`: the thing, such as `run sft-1`. `path`: of its page,
    below the project's."""

    project_id: uuid.UUID
    comment_id: uuid.UUID
    about: str
    path: str
    author: str
    names: Sequence[str]
    text: str


# Called in the transaction of the comment.
mentioned: Hook[[Session, Mention], None] = Hook("marks.mentioned")
