"""The letters under which answers are shown, in the order of the screen."""

from __future__ import annotations

KEYS = "ABCDEFGH"
