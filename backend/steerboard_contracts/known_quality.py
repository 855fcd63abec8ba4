"""Programs that know how good an answer is, for data whose truth is known: they take the place of a reward model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

KnownQuality = Literal["synthetic", "sentiment"]

# What such a program is called among the sources of an evaluation; no model can have this name.
KNOWN_QUALITY = "known quality"
# What stands for a reward model's hash where such a program rates the answers of an evaluation.
MARKS: Mapping[KnownQuality, str] = {"synthetic": "known quality", "sentiment": "known quality: sentiment"}


def marked(content_hash: str) -> KnownQuality | None:
    """Which program it stands for; None for a reward model's."""
    return next((kind for kind, mark in MARKS.items() if mark == content_hash), None)
