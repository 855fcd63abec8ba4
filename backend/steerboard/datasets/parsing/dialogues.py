"""Conversations as files write them, turned into lists of turns and split into prompt and response.

Three forms: Anthropic's transcripts (`\\n\\nHuman: ... \\n\\nAssistant: ...`), message lists with role/content
(OpenAI, TRL), and message lists with from/value (ShareGPT).
"""

from __future__ import annotations

import re
from typing import Any

from steerboard.datasets.parsing.messages import Turn, answer_of, message_turns, role_of
from steerboard_files.records import Problem

_MARKER = re.compile(r"(?:^|\n\n)(Human|Assistant):")
_TRANSCRIPT = re.compile(r"\s*Human:")


def is_transcript(value: object) -> bool:
    """Whether a text is of the form `\\n\\nHuman: ... \\n\\nAssistant: ...`."""
    return isinstance(value, str) and _TRANSCRIPT.match(value) is not None and "\n\nAssistant:" in value


def is_message_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(turn, dict) for turn in value)


def transcript_turns(text: str) -> list[Turn]:
    """The turns of a transcript, stripped of the white space around them. A turn may be empty."""
    parts = _MARKER.split("\n\n" + text.lstrip())
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [{"role": "user" if name == "Human" else "assistant", "content": words.strip()} for name, words in pairs]


def turns_of(value: Any, transcripts: bool) -> list[Turn] | None:
    """The turns of a value in any of the three forms; None when it is plain text or something else."""
    if isinstance(value, list):
        return message_turns(value)
    return transcript_turns(value) if transcripts and is_transcript(value) else None


def has_empty_turn(turns: list[Turn]) -> bool:
    return any(isinstance(t, dict) and not _may_be_silent(t) and _is_blank(t["content"]) for t in turns)


def _may_be_silent(turn: Turn) -> bool:
    return turn["role"] == "tool" or "tool_calls" in turn


def _is_blank(content: Any) -> bool:
    return isinstance(content, str) and not content.strip()


def has_system_turn(messages: Any) -> bool:
    """Whether a list of messages begins with a system turn."""
    return is_message_list(messages) and role_of(messages[0]) == "system"


def with_system(turns: list[Turn], system: Any) -> list[Turn] | Problem:
    """The turns after a system text, unless they begin with that text themselves."""
    if not isinstance(system, str) or not system.strip():
        return turns
    first = turns[0] if turns and isinstance(turns[0], dict) else {}
    if first.get("role") != "system":
        return [{"role": "system", "content": system}, *turns]
    if isinstance(first["content"], str) and first["content"].strip() == system.strip():
        return turns
    return Problem("bad_row", "has a system text in a column of its own, and another one in the conversation")


def with_repeated(turns: list[Turn], prompt: list[Turn]) -> list[Turn] | Problem:
    """The turns of a dialogue, next to which its prompt was given once more: with a system turn that only the prompt
    has. Nothing else of the prompt may be missing from them."""
    system = prompt[0]["content"] if has_system_turn(prompt) else None
    texts = [turn["content"] for turn in turns if isinstance(turn, dict) and isinstance(turn["content"], str)]
    for turn in prompt[system is not None :]:
        content = turn["content"] if isinstance(turn, dict) else None
        if not isinstance(content, str) or not any(content.strip() in text for text in texts):
            return Problem("bad_row", "prompt: is not part of the dialogues in chosen and rejected")
    return with_system(turns, system)


def split_last(turns: list[Turn]) -> tuple[list[Turn], Any] | Problem:
    """(prompt, response) where the last turn is the assistant's."""
    if not turns or not isinstance(turns[-1], dict) or turns[-1]["role"] != "assistant":
        return Problem("bad_row", "the messages do not end with an assistant turn")
    return turns[:-1], answer_of(turns[-1])


def split_sides(chosen: list[Turn], rejected: list[Turn]) -> tuple[list[Turn], Any, Any] | None:
    """(prompt, chosen, rejected) of two dialogues: the longest common prefix of turns is the prompt.

    None unless exactly one assistant turn is left on each side: where the dialogues part earlier, the later
    user turns differ too, and no single prompt has these two answers. Equal dialogues keep their last turn
    as both sides, for cleaning to count.
    """
    shared = 0
    for ours, turn in zip(chosen, rejected, strict=False):
        if ours != turn:
            break
        shared += 1
    if shared == len(chosen) == len(rejected):
        shared -= 1
    if shared < 1 or len(chosen) != shared + 1 or len(rejected) != shared + 1:
        return None
    last, other = chosen[-1], rejected[-1]
    if not (isinstance(last, dict) and isinstance(other, dict) and last["role"] == other["role"] == "assistant"):
        return None
    return chosen[:-1], answer_of(last), answer_of(other)
