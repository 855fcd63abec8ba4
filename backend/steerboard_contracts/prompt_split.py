"""Which split and half a prompt belongs to, by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

from steerboard_contracts.tools import calls_text
from steerboard_contracts.turns import Message, SampleMessage

Half = Literal["a", "b"]


def canonical_prompt(prompt: Sequence[Message | SampleMessage]) -> str:
    """The text that identifies a prompt: roles, contents, and calls of tools. The tools that are offered are left out,
    so that a question is held out with whatever tools it comes."""
    turns = [[m.role, m.content, *_calls(m)] for m in prompt]
    return json.dumps(turns, ensure_ascii=False, separators=(",", ":"))


def _calls(message: Message | SampleMessage) -> list[str]:
    calls = message.tool_calls if isinstance(message, SampleMessage) else None
    return [calls_text({"tool_calls": [call.model_dump() for call in calls]})] if calls else []


def prompt_hash(prompt: Sequence[Message | SampleMessage], salt: str) -> int:
    """Signed 64-bit hash of a prompt under the project's salt; decides split and half."""
    digest = hashlib.sha256(f"{salt}\x00{canonical_prompt(prompt)}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def is_held_out(hash64: int, fraction: float) -> bool:
    """Whether a prompt belongs to the held-out split. Reads the upper 63 bits, `half_of` the lowest."""
    return ((hash64 + 2**63) >> 1) < fraction * 2.0**63


def half_of(hash64: int) -> Half:
    """Which of two disjoint halves a prompt falls into, for a reward model and its independent twin."""
    return "a" if hash64 & 1 == 0 else "b"
