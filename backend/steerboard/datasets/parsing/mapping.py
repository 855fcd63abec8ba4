"""Which column feeds which field: recognised from the columns' names and first values, or given by the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from steerboard.datasets.parsing.dialogues import has_system_turn, is_message_list, is_transcript
from steerboard.datasets.parsing.thumbs import may_be_thumbs
from steerboard.datasets.parsing.unread_layouts import unread_layout
from steerboard.datasets.parsing.unused_columns import is_number, winner_layout
from steerboard_contracts.attribute_names import NAME_PATTERN
from steerboard_contracts.samples import ATTRIBUTES, GROUP_FIELDS, SAMPLE_CLASSES, SampleKind
from steerboard_files.errors import UnknownColumn

# The first name that a file has wins; the field's own name comes first, so that our exports read back.
ALIASES: dict[str, tuple[str, ...]] = {
    "prompt": ("prompt", "instruction", "question", "query", "user", "user_prompt"),
    "input": ("input",),
    "system": ("system", "system_prompt"),
    "messages": ("messages", "conversations", "conversation", "dialogue", "dialog", "turns"),
    "response": ("response", "output", "answer", "completion", "response_text"),
    "chosen": ("chosen", "chosen_response", "response_chosen", "preferred"),
    "rejected": ("rejected", "rejected_response", "response_rejected", "dispreferred"),
    "margin": ("margin",),
    "desirable": ("desirable", "label", "kto_tag", "thumbs_up", "is_good"),
    "reward": ("reward", "score", "rating", "grade"),
    "source": ("source", "subset"),
    "reference": ("reference", "reference_answer"),
    "group": ("group",),
    "candidate": ("candidate",),
    "item": ("item",),
    "attributes": ("attributes",),
    "tools": ("tools", "functions"),
    "completions": ("completions", "steps"),
    "labels": ("labels", "step_labels"),
}
# Becomes part of the prompt's first turn.
TOOLS = "tools"
# A field of its own for each attribute that has a column of its own: `attributes.verbosity`.
ONE_ATTRIBUTE = f"{ATTRIBUTES}."
_LISTED = 20
_SAY_WHAT = "Specify them, for example --kind preferences --map prompt=COLUMN,chosen=COLUMN,rejected=COLUMN."
_LONG_NAME = 80
_SCORES = ("score_chosen", "score_rejected")

# What a kind can take from a file. `messages`, `system` and `input` become part of the prompt.
FIELDS: dict[SampleKind, tuple[str, ...]] = {
    "instructions": ("prompt", "response", "messages", "system", "input", "source", TOOLS, *GROUP_FIELDS),
    "preferences": ("prompt", "chosen", "rejected", "margin", "messages", "system", "input", "source", TOOLS),
    "unpaired": ("prompt", "response", "desirable", "messages", "system", "input", TOOLS, *GROUP_FIELDS),
    "prompts": ("prompt", "reference", "messages", "system", "input", TOOLS),
    "labelled": (
        *("prompt", "response", "reward", "source", "messages", "system", "input", TOOLS),
        *(*GROUP_FIELDS, "item", ATTRIBUTES),
    ),
    "stepwise": ("prompt", "completions", "labels", "messages", "system", "input", "source", TOOLS),
}
NEEDED: dict[SampleKind, tuple[str, ...]] = {
    "instructions": ("prompt", "response"),
    "preferences": ("prompt", "chosen", "rejected"),
    "unpaired": ("prompt", "response", "desirable"),
    "prompts": ("prompt",),
    "labelled": ("prompt", "response", "reward"),
    "stepwise": ("prompt", "completions", "labels"),
}


@dataclass(frozen=True)
class Mapping:
    """`columns`: field -> column. `transcripts`: texts are Human/Assistant transcripts. `sides_hold_prompt`:
    chosen and rejected are whole dialogues. `margin_from_scores`: score_chosen - score_rejected."""

    kind: SampleKind
    columns: dict[str, str]
    transcripts: bool = False
    sides_hold_prompt: bool = False
    margin_from_scores: bool = False

    @property
    def consumed(self) -> frozenset[str]:
        """Columns that do not go to `extra`: those read, and those an export would write under the same name."""
        # Many files have a column `group` that means something else; it is kept like any other.
        fields = {field.partition(".")[0] for field in self.columns}
        written = set(SAMPLE_CLASSES[self.kind].model_fields) - ({*GROUP_FIELDS, "item", ATTRIBUTES} - fields)
        return frozenset(self.columns.values()) | written

    @property
    def read(self) -> frozenset[str]:
        """Columns that a field is made of."""
        return frozenset(self.columns.values()) | (frozenset(_SCORES) if self.margin_from_scores else frozenset())

    @property
    def form(self) -> Literal["columns", "transcripts", "dialogues"]:
        """The form of the conversations in the file."""
        if self.transcripts:
            return "transcripts"
        return "dialogues" if self.sides_hold_prompt else "columns"

    @property
    def has_margin(self) -> bool:
        return "margin" in self.columns or self.margin_from_scores


def detect_kind(columns: Sequence[str], first_rows: Sequence[dict[str, Any]] = ()) -> SampleKind:
    """The kind whose fields the columns have. Raises `UnknownColumn` when there is none."""

    def has(field: str) -> bool:
        return any(may_feed(field, column, first_rows) for column in called_like(field, columns))

    if has("chosen") and has("rejected"):
        return "preferences"
    if has("completions") and has("labels") and (has("prompt") or has("messages")):
        return "stepwise"
    if has("desirable") and (has("messages") or (has("response") and has("prompt"))):
        return "unpaired"
    if has("response") and has("prompt"):
        graded = any(map(_is_attribute, columns)) or any(_are_grades(row.get(ATTRIBUTES)) for row in first_rows)
        return "labelled" if has("reward") or graded else "instructions"
    if has("messages"):
        return "instructions"
    # Taken for prompts alone, the answers and who won would be lost without a word.
    layout = winner_layout(columns)
    unread = unread_layout(columns, first_rows)
    if has("prompt") and layout is None and unread is None:
        return "prompts"
    raise UnknownColumn(
        f"no kind of dataset has these columns: {listed(columns)}",
        hint=layout.words if layout else unread or _SAY_WHAT,
    )


def called_like(field: str, columns: Sequence[str]) -> list[str]:
    """Columns that a field is recognised by, its own name first; in capitals where no other column has the name."""
    capitals = {column.lower(): column for column in reversed(columns)}
    names = (alias if alias in columns else capitals.get(alias) for alias in ALIASES[field])
    return [name for name in names if name is not None]


def may_feed(field: str, column: str, first_rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a column that is called like a field, or nearly so, may hold its values: a `label` of topics is no thumb,
    and a `rating` of films is no reward. A column of the field's own name always may."""
    values = [row.get(column) for row in first_rows]
    if field == "desirable" and column != field:
        return may_be_thumbs(values)
    if field in ("completions", "labels"):
        given = [value for value in values if value is not None]
        return not given or any(map(_is_list, given))
    if field == "reward" and column != field:
        given = [value for value in values if value not in (None, "")]
        return not given or any(map(is_number, given))
    return True


def plan_mapping(
    kind: SampleKind | None,
    columns: Sequence[str],
    first_rows: Sequence[dict[str, Any]],
    given: dict[str, str],
    without: frozenset[str] = frozenset(),
) -> Mapping:
    """Recognise columns; `given` (field -> column) overrides, fields in `without` take none.

    Raises `UnknownColumn` naming what there is.
    """
    kind_given = kind is not None
    if kind is None:
        # A field named by the user counts as a column of that name.
        kind = detect_kind([*columns, *given], first_rows)
    _check_given(kind, columns, given)
    column_of = dict(given)
    # A grade may be the reward and an attribute.
    taken = {column for field, column in given.items() if not field.startswith(ONE_ATTRIBUTE)}
    for field in FIELDS[kind]:
        named = [column for column in called_like(field, columns) if column not in taken]
        # What does not fit is refused row by row if nothing else could be meant.
        alias = next((a for a in named if may_feed(field, a, first_rows)), named[0] if named and kind_given else None)
        if alias and field not in column_of and field not in without:
            column_of[field] = alias
    _drop_unusable(kind, column_of, given, first_rows)

    def values(field: str) -> list[Any]:
        return [
            row[column_of[field]] for row in first_rows if field in column_of and row.get(column_of[field]) is not None
        ]

    sides = values("chosen") + values("rejected")
    side_transcripts = bool(sides) and all(is_transcript(v) for v in sides)
    dialogues = bool(sides) and all(is_message_list(v) and len(v) > 1 for v in sides)
    if side_transcripts or dialogues:
        for field in ("messages", "input"):
            column_of.pop(field, None)  # the prompt is in the sides
        # A prompt column repeats it, perhaps with a system turn that they lack.
        if column_of.get("prompt") not in (None, "prompt", given.get("prompt")):
            del column_of["prompt"]
    elif "messages" in column_of and "prompt" in column_of and "messages" not in given:
        # Prompt and response side by side are preferred; a lone prompt column repeats the messages' first turn.
        complete = kind in ("prompts", "preferences", "stepwise") or "response" in column_of
        complete = complete and not any(map(has_system_turn, values("messages")))
        column_of.pop("messages" if complete or "prompt" in given else "prompt")
    _check_complete(kind, columns, column_of, side_transcripts or dialogues, first_rows)
    if column_of.get("prompt") != "instruction" and "input" not in given:
        column_of.pop("input", None)  # `input` belongs to `instruction` (Alpaca); elsewhere it is any column
    prompts = values("prompt")
    return Mapping(
        kind=kind,
        columns=column_of,
        transcripts=side_transcripts or (bool(prompts) and all(is_transcript(v) for v in prompts)),
        sides_hold_prompt=side_transcripts or dialogues,
        margin_from_scores=kind == "preferences"
        and "margin" not in {*column_of, *without}
        and all(s in columns for s in _SCORES),
    )


def _check_given(kind: SampleKind, columns: Sequence[str], given: dict[str, str]) -> None:
    for field, column in given.items():
        if field not in FIELDS[kind] and not (ATTRIBUTES in FIELDS[kind] and _is_attribute(field)):
            several = f", or {ONE_ATTRIBUTE}NAME=COLUMN for each attribute" if ATTRIBUTES in FIELDS[kind] else ""
            raise UnknownColumn(
                f"{kind} have no field {field!r}; they have {listed(FIELDS[kind])}",
                hint=f"Write --map FIELD=COLUMN with one of these fields{several}.",
            )
        if column not in columns:
            raise UnknownColumn(
                f"there is no column {column!r} (given for {field}); the file has {listed(columns)}",
                hint="Column names are case-sensitive.",
            )


def _drop_unusable(
    kind: SampleKind, column_of: dict[str, str], given: dict[str, str], first_rows: Sequence[dict[str, Any]]
) -> None:
    """Forget optional columns that were only guessed by name and hold something else."""
    for field in ("source", "system", "input", "reference", "item"):
        column = column_of.get(field)
        if column is None or field in given:
            continue
        if not all(isinstance(row.get(column), str | None) for row in first_rows):
            del column_of[field]
    if TOOLS not in given and not all(
        _may_be_tools(row.get(column_of[TOOLS])) for row in first_rows if TOOLS in column_of
    ):
        del column_of[TOOLS]
    if ATTRIBUTES not in given and not all(
        _may_be_attributes(row.get(column_of[ATTRIBUTES])) for row in first_rows if ATTRIBUTES in column_of
    ):
        del column_of[ATTRIBUTES]
    guessed = [field for field in GROUP_FIELDS if field not in given]
    if len(column_of.keys() & GROUP_FIELDS) == 1 or not all(
        _is_whole(row.get(column_of[field])) for row in first_rows for field in guessed if field in column_of
    ):
        for field in guessed:
            column_of.pop(field, None)
    if kind == "preferences" and "prompt" in column_of and "messages" not in given:
        column_of.pop("messages", None)


def _is_list(value: Any) -> bool:
    """Whether a cell holds a list; a CSV file has it as JSON."""
    return isinstance(value, list) or (isinstance(value, str) and value[:1] == "[")


def _is_attribute(field: str) -> bool:
    return re.fullmatch(re.escape(ONE_ATTRIBUTE) + NAME_PATTERN, field) is not None


def _may_be_tools(value: Any) -> bool:
    """Whether a cell holds a list of objects, perhaps as JSON, or nothing."""
    if isinstance(value, str):
        return value.strip()[:1] in ("", "[")
    return value is None or (isinstance(value, list) and all(isinstance(tool, dict) for tool in value))


def _may_be_attributes(value: Any) -> bool:
    """Whether a cell holds values by name, or nothing; a CSV file has them as JSON."""
    return value is None or isinstance(value, dict) or (isinstance(value, str) and value[:1] in ("", "{"))


def _are_grades(value: Any) -> bool:
    """Whether a cell holds numbers by name, and so could be nothing but attributes."""
    given = [grade for grade in value.values() if grade is not None] if isinstance(value, dict) else []
    return bool(given) and all(isinstance(grade, int | float) and not isinstance(grade, bool) for grade in given)


def _is_whole(value: Any) -> bool:
    """Whether a cell holds a whole number, or nothing."""
    if isinstance(value, str):
        return not value or (value.isascii() and value.isdigit())
    if value is None or isinstance(value, bool):
        return value is None
    return isinstance(value, int | float) and value >= 0 and value == value // 1


def _check_complete(
    kind: SampleKind,
    columns: Sequence[str],
    column_of: dict[str, str],
    in_sides: bool,
    first_rows: Sequence[dict[str, Any]],
) -> None:
    supplied = set(column_of)
    if in_sides:
        supplied.add("prompt")
    if "messages" in column_of:
        supplied |= {"prompt"} if kind in ("prompts", "preferences", "stepwise") else {"prompt", "response"}
    if any(field.partition(".")[0] == ATTRIBUTES for field in column_of):
        supplied.add("reward")  # a row with attributes needs none
    missing = [field for field in NEEDED[kind] if field not in supplied]
    if missing:
        known = "; ".join(f"{field}: {', '.join(ALIASES[field])}" for field in missing)
        raise UnknownColumn(
            f"{kind} need {listed(NEEDED[kind])}, and no column was found for {listed(missing)};"
            f" the file has {listed(columns)}",
            hint=unread_layout(columns, first_rows)
            or f"Known names are {known}. For other names: --map {missing[0]}=COLUMN.",
        )


def listed(names: Sequence[str]) -> str:
    """Names for a message: of a wide file only the first ones, and of a long name only its beginning."""
    shown = ", ".join(name if len(name) <= _LONG_NAME else f"{name[:_LONG_NAME]}…" for name in names[:_LISTED])
    return f"{shown}, and {len(names) - _LISTED} more" if len(names) > _LISTED else shown or "no columns"
