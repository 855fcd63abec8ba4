"""`--set a.b=value`: typed like the file itself, and remembered as the place of what they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steerboard.recipes.budget import Budget
from steerboard.recipes.document import Document, dotted, parse_value
from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_DEPTH
from steerboard.recipes.places import Path, Place
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.decoding import NAMED

MAX_OVERRIDES = 200


@dataclass(frozen=True)
class Override:
    """One `--set`. `head` is an input or a stage, `path` what follows it."""

    text: str
    path: tuple[str, ...]
    value: Any
    raw: str

    @property
    def head(self) -> str:
        return self.path[0]

    @property
    def place(self) -> Place:
        return Place(override=self.text)

    @property
    def field(self) -> str:
        return field_of(self.path)


def field_of(path: tuple[str, ...]) -> str:
    """`inputs.base` or `stages.sft.lr`: the place in the recipe that an override of this path changes."""
    return dotted(("inputs" if len(path) == 1 else "stages", *path))


def parse_overrides(texts: list[str], faults: Faults, budget: Budget) -> list[Override]:
    """Split and type each `path=value`. A later one wins over an earlier one."""
    if len(texts) > MAX_OVERRIDES:
        faults.add("--set", f"{len(texts)} overrides; the limit is {MAX_OVERRIDES}")
        return []
    found = []
    for text in texts:
        name, equals, raw = text.partition("=")
        path = tuple(part.strip() for part in name.strip().split("."))
        if path and path[0] in ("stages", "inputs") and len(path) > 1:
            path = path[1:]
        if not equals or not all(path):
            faults.add(f"--set {text}", "is not of the form name=value or stage.field=value")
            continue
        if len(path) > MAX_DEPTH:
            faults.add(f"--set {text}", f"is nested more than {MAX_DEPTH} deep")
            continue
        try:
            found.append(Override(text=text, path=path, value=_value(raw, budget), raw=raw.strip()))
        except ValueError as error:
            faults.add(f"--set {text}", f"the value is not valid YAML: {error}", field=field_of(path))
    return found


def _value(raw: str, budget: Budget) -> Any:
    # YAML keeps `@` for itself, so `@production` is a name and nothing else.
    return raw.strip() if raw.strip().startswith("@") else parse_value(raw, budget)


def apply_to_stage(document: Document, override: Override, faults: Faults) -> None:
    """Change a field of a stage, at any depth. A last key that is absent is created; checks come later."""
    path: Path = ("stages",)
    target: Any = document.data["stages"]
    for depth, part in enumerate(override.path):
        last = depth == len(override.path) - 1
        if isinstance(target, dict):
            path = (*path, part)
            if not last and not isinstance(target.get(part), dict | list):
                # `--set report.decoding.max_new_tokens=64` where the file has none, or has a word such as `sampled`.
                word = target.get(part)
                known = NAMED.get(word, {}) if part == "decoding" and isinstance(word, str) else {}
                document.put(path, dict(known), override.place)
            target = target.get(part)
        elif isinstance(target, list):
            if not part.isdigit() or int(part) >= len(target):
                what = f"`{part}` is not an item of it; it has {len(target)} item{'s' if len(target) != 1 else ''}"
                message = f"{dotted(path)} is a list, and {what}"
                faults.add(f"--set {override.text}", message, field=override.field)
                return
            path = (*path, int(part))
            target = target[int(part)]
        else:
            faults.add(f"--set {override.text}", f"{dotted(path)} has no fields", field=override.field)
            return
    document.put(path, override.value, override.place)


def unknown_target(override: Override, known: list[str]) -> str:
    """Why an override's head is nothing that can be set."""
    return f"the recipe has no input or stage `{override.head}`" + did_you_mean(override.head, known)
