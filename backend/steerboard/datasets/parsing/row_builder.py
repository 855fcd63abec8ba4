"""A file's record -> the fields of a sample, and the columns that belong to no field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from steerboard.datasets.parsing.dialogues import (
    is_transcript,
    split_last,
    split_sides,
    transcript_turns,
    turns_of,
    with_repeated,
    with_system,
)
from steerboard.datasets.parsing.mapping import ONE_ATTRIBUTE, TOOLS, Mapping
from steerboard.datasets.parsing.messages import Turn, UnreadableMessage, answer_of
from steerboard.datasets.parsing.thumbs import as_thumb
from steerboard_contracts.samples import ATTRIBUTES, GROUP_FIELDS
from steerboard_files.records import Problem

_OPTIONAL = ("margin", "source", "reference", "item", *GROUP_FIELDS, ATTRIBUTES)
_LISTS = ("completions", "labels")
_SHOWN = 80
_NO_THUMB = "is neither good nor bad, such as true and false, 1 and 0, or yes and no"
_REQUIRED = ("prompt", "messages", "response", "chosen", "rejected", "desirable", "reward", "completions", "labels")


@dataclass(slots=True)
class Shaped:
    """`sample` is not validated yet. `diverging`: the two dialogues of a pair part before their last turn."""

    sample: dict[str, Any]
    extra: dict[str, Any] | None
    plain_prompt: bool
    diverging: bool = False


class Shaper:
    """Applies one `Mapping`. `texts_only`: the file is CSV, so numbers, truth values and lists arrive as text."""

    def __init__(self, mapping: Mapping, texts_only: bool) -> None:
        self._mapping = mapping
        self._columns = mapping.columns
        self._consumed = mapping.consumed
        self._texts_only = texts_only

    def __call__(self, record: dict[str, Any]) -> Shaped | Problem:
        try:
            shaped = self._shape(record)
            tools = record.get(self._columns.get(TOOLS, ""))
            return shaped if isinstance(shaped, Problem) else _with_tools(shaped, tools)
        except UnreadableMessage as error:
            return Problem("bad_row", str(error))

    def _shape(self, record: dict[str, Any]) -> Shaped | Problem:
        fields = {
            field: record[column] for field, column in self._columns.items() if column in record and field != TOOLS
        }
        consumed = self._consumed
        extra = {name: value for name, value in record.items() if name not in consumed} or None
        if self._texts_only:
            fields = {field: _from_cell(field, value) for field, value in fields.items()}
        for field in _OPTIONAL:
            if field in fields and fields[field] in (None, ""):
                del fields[field]
        _gather_attributes(fields)
        if ATTRIBUTES in fields and fields.get("reward") in (None, ""):
            fields.pop("reward", None)
        for field, value in fields.items():
            if value is None and field in _REQUIRED and not (field == "prompt" and self._mapping.sides_hold_prompt):
                return Problem("bad_row", f"{field}: is null")
        if "desirable" in fields:
            thumb = as_thumb(fields["desirable"])
            if thumb is None:
                return Problem("bad_row", f"{self._named('desirable')}: {shown(fields['desirable'])} {_NO_THUMB}")
            fields["desirable"] = thumb
        if self._mapping.margin_from_scores:
            fields["margin"] = _difference(record)
        for field in ("margin", "reward"):
            if isinstance(fields.get(field), int | float) and not isinstance(fields[field], bool):
                fields[field] = float(fields[field]) + 0.0  # -0.0 becomes 0.0, as JSONB would make it
        if self._mapping.sides_hold_prompt:
            return self._from_sides(fields, extra)
        return self._from_columns(fields, extra)

    def _named(self, field: str) -> str:
        """A field, with the column that feeds it under another name."""
        column = self._columns.get(field, field)
        return field if column == field else f"{field} (column `{column}`)"

    def _from_sides(self, fields: dict[str, Any], extra: dict[str, Any] | None) -> Shaped | Problem:
        chosen, rejected = (turns_of(fields.get(side), self._mapping.transcripts) for side in ("chosen", "rejected"))
        if chosen is None or rejected is None:
            side = "chosen" if chosen is None else "rejected"
            return Problem("bad_row", f"{side}: is not a dialogue, unlike the rows before it")
        split = split_sides(chosen, rejected)
        if split is None:
            return Shaped({}, extra, plain_prompt=False, diverging=True)
        prompt, fields["chosen"], fields["rejected"] = split
        given = fields.get("prompt")
        repeated = (turns_of(given, transcripts=True) or _as_turns(given)) if given else []
        whole = with_repeated(prompt, repeated)
        if not isinstance(whole, Problem):
            whole = with_system(whole, fields.pop("system", None))
        if isinstance(whole, Problem):
            return whole
        fields["prompt"] = whole
        return Shaped(fields, extra, plain_prompt=False)

    def _from_columns(self, fields: dict[str, Any], extra: dict[str, Any] | None) -> Shaped | Problem:
        messages = fields.pop("messages", None)
        plain = messages is None
        if messages is not None:
            turns = turns_of(messages, transcripts=True)
            if turns is None:
                return Problem("bad_row", f"{self._columns['messages']}: is not a list of messages")
            if self._mapping.kind == "prompts":
                fields["prompt"] = turns[:-1] if turns and _is_assistant(turns[-1]) else turns
            elif self._mapping.kind in ("preferences", "stepwise"):
                fields["prompt"] = turns
            else:
                split = split_last(turns)
                if isinstance(split, Problem):
                    return split
                fields["prompt"], fields["response"] = split
        elif "prompt" in fields:
            plain = isinstance(fields["prompt"], str)
            fields["prompt"] = self._prompt(fields["prompt"], fields.pop("input", None))
            if plain and not isinstance(fields["prompt"], str):
                plain = False
        for side in ("chosen", "rejected", "response"):
            if isinstance(fields.get(side), list | dict):
                fields[side] = _lone_answer(fields[side])
        system = fields.pop("system", None)
        if isinstance(system, str) and system.strip():
            prompt = with_system(_as_turns(fields.get("prompt")), system)
            if isinstance(prompt, Problem):
                return prompt
            fields["prompt"] = prompt
            plain = False
        return Shaped(fields, extra, plain_prompt=plain)

    def _prompt(self, prompt: Any, more: Any) -> Any:
        if isinstance(prompt, list):
            return turns_of(prompt, transcripts=False)
        if self._mapping.transcripts and is_transcript(prompt):
            turns = transcript_turns(prompt)
            return turns[:-1] if turns[-1]["role"] == "assistant" and not turns[-1]["content"] else turns
        if isinstance(prompt, str) and isinstance(more, str) and more.strip():
            return f"{prompt}\n\n{more}"
        return prompt


def _with_tools(shaped: Shaped, tools: Any) -> Shaped | Problem:
    """The tools of a column of their own, as those of the conversation's first turn."""
    turns = _as_turns(shaped.sample.get("prompt"))
    if tools in (None, "", [], "[]", "null") or not turns or not isinstance(turns[0], dict):
        return shaped
    if turns[0].get(TOOLS, tools) != tools:
        return Problem("bad_row", "has tools in a column of their own, and others in the conversation")
    shaped.sample["prompt"] = [{**turns[0], TOOLS: tools}, *turns[1:]]
    shaped.plain_prompt = False
    return shaped


def _gather_attributes(fields: dict[str, Any]) -> None:
    """Values of one column, and those of columns of their own, as one mapping without what is missing."""
    single = {field: fields.pop(field) for field in list(fields) if field.startswith(ONE_ATTRIBUTE)}
    given = fields.get(ATTRIBUTES, {})
    if not isinstance(given, dict):
        return  # the validation words the refusal
    both = {**given, **{field.removeprefix(ONE_ATTRIBUTE): value for field, value in single.items()}}
    fields[ATTRIBUTES] = {name: value for name, value in both.items() if value is not None and value != ""}
    if not fields[ATTRIBUTES]:
        del fields[ATTRIBUTES]


def _as_turns(prompt: Any) -> list[Any]:
    return prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]


def _is_assistant(turn: Turn) -> bool:
    return isinstance(turn, dict) and bool(turn["role"] == "assistant")


def _lone_answer(value: list[Any] | dict[str, Any]) -> Any:
    """TRL writes an answer as a list of one assistant message, and LlamaFactory as that message."""
    turns = turns_of([value] if isinstance(value, dict) else value, transcripts=False) or []
    return answer_of(turns[0]) if len(turns) == 1 and _is_assistant(turns[0]) else value


def shown(value: Any) -> str:
    """A value for a message, of which a long one has only its beginning."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _difference(record: dict[str, Any]) -> Any:
    try:
        return float(record["score_chosen"]) - float(record["score_rejected"])
    except (KeyError, TypeError, ValueError):
        return None


def _from_cell(field: str, cell: Any) -> Any:
    """What a CSV cell means: a number where a number is due, the values that JSON of attributes holds."""
    if not isinstance(cell, str):
        return cell
    if field in ("margin", "reward"):
        try:
            return float(cell)
        except ValueError:
            return cell or None
    if (field == ATTRIBUTES and cell.startswith("{")) or (field in _LISTS and cell.startswith("[")):
        try:
            return orjson.loads(cell)
        except orjson.JSONDecodeError:
            return cell
    return cell
