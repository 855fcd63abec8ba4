"""`--set a.b=value`: typed like the file itself, and remembered as the place of what they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steerboard.recipes.document import parse_value
from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_DEPTH, Budget
from steerboard.recipes.places import Path, Place, dotted
from steerboard.recipes.recipe import Stage
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
    overrides = []
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
            overrides.append(Override(text=text, path=path, value=_value(raw, budget), raw=raw.strip()))
        except ValueError as error:
            faults.add(f"--set {text}", f"the value is not valid YAML: {error}", field=field_of(path))
    return overrides


def _value(raw: str, budget: Budget) -> Any:
    # YAML keeps `@` for itself, so `@production` is a name and nothing else.
    return raw.strip() if raw.strip().startswith("@") else parse_value(raw, budget)


def apply_to_stage(stage: Stage, override: Override, faults: Faults) -> Stage:
    """The stage with a field changed, at any depth. A last key that is absent is created; checks come later."""
    at: Path = ()
    for depth, part in enumerate(override.path[1:], start=2):
        last = depth == len(override.path)
        target = stage.node.at(*at).value
        if isinstance(target, dict):
            at = (*at, part)
            if not last and not isinstance(target.get(part), dict | list):
                # `--set report.decoding.max_new_tokens=64` where the file has none, or has a word such as `sampled`.
                word = target.get(part)
                known = NAMED.get(word, {}) if part == "decoding" and isinstance(word, str) else {}
                stage = stage.put(at, dict(known), override.place)
        elif isinstance(target, list) and part.isdigit() and int(part) < len(target):
            at = (*at, int(part))
        else:
            message = f"{dotted((*stage.path, *at))} has no fields"
            if isinstance(target, list):
                what = f"`{part}` is not an item of it; it has {len(target)} item{'s' if len(target) != 1 else ''}"
                message = f"{dotted((*stage.path, *at))} is a list, and {what}"
            faults.add(f"--set {override.text}", message, field=override.field)
            return stage
    return stage.put(at, override.value, override.place)


def unknown_target(override: Override, known: list[str]) -> str:
    """Why an override's head is nothing that can be set."""
    return f"the recipe has no input or stage `{override.head}`" + did_you_mean(override.head, known)
