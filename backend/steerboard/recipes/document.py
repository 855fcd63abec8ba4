"""A recipe file as plain data, with the line of every key and item, so that each error can name its place.

ruamel.yaml has such lines too, but stops at the first key that is given twice, merges `<<`, recurses without a bound,
expands no alias within one, and reads `1_000` and `0b11` as numbers and 2020-01-01 as a date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from steerboard.recipes.budget import Budget
from steerboard.recipes.errors import Faults, InvalidRecipe
from steerboard.recipes.limits import MAX_BYTES, MAX_DEPTH, MAX_KEY, MAX_VALUES, Size, refuse_large
from steerboard.recipes.places import Path, Place, Places
from steerboard.recipes.scalars import CoreLoader, scalar_value
from steerboard_contracts.errors import ErrorLocation


def dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)


@dataclass
class Document:
    """`data` holds dicts, lists and scalars; `places` the place of each path in it."""

    data: dict[str, Any]
    places: Places = field(default_factory=Places)
    derived: set[Path] = field(default_factory=set)
    """What the planner wrote, with everything below it."""
    budget: Budget = field(default_factory=Budget)
    copies: dict[str, Path] = field(default_factory=dict)
    """By stage that is a copy, such as that of a round, what it is a copy of."""

    def place(self, path: Path) -> Place | None:
        """The place of a path, or of its nearest ancestor that has one."""
        self.budget.check()
        return self.places.nearest(path)

    def location(self, path: Path) -> str:
        """`stages.dt.lr (line 14)`."""
        place = self.place(path)
        name = dotted(path) or "recipe"
        return f"{name} ({place})" if place else name

    def fault(
        self, faults: Faults, path: Path, message: str, code: str | None = None, field: Path | None = None
    ) -> None:
        """`field`: where a form shows it, if that is not where it was written."""
        place = self.place(path)
        derived = any(path[:length] in self.derived for length in range(len(path) + 1))
        derived = derived and (place is None or place.override is None)
        line = place.line if place else None
        # A fault of a stage of which there are copies is one fault, not one for each.
        written = self.written(path)
        of = f"{dotted(written)} ({place})" if written != path else None
        faults.add(self.location(path), message, line, field=dotted(field or path), derived=derived, code=code, of=of)

    def written(self, path: Path) -> Path:
        """Where in the file this part of a stage is written."""
        while path[:1] == ("stages",) and len(path) > 1 and path[1] in self.copies:
            path = (*self.copies[str(path[1])], *path[2:])
        return path

    def put(self, path: Path, value: Any, place: Place) -> None:
        """Replace a value and everything below it. The parent must exist."""
        self.budget.check()
        target: Any = self.data
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = value
        self.places.replace(path, place)

    def remove_item(self, path: Path, index: int) -> None:
        """Take an item out of a list; the places of those behind it move up with them."""
        self.budget.check()
        target: Any = self.data
        for part in path:
            target = target[part]
        del target[index]
        self.places.remove_item(path, index)


def parse(text: str, budget: Budget | None = None) -> Document:
    """Read a recipe. Raises `InvalidRecipe` with all structural faults (syntax stops at the first)."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise InvalidRecipe(f"the recipe is {size:,} bytes long; the limit is {MAX_BYTES:,}", code="recipe_too_large")
    document = Document(data={}, budget=budget or Budget())
    root = _compose(text, "recipe", document.budget)
    faults = Faults()
    builder = _Builder(document, faults)
    value = builder.build(root, ())
    if not isinstance(value, dict):
        faults.add("recipe (line 1)", "must be a mapping with `name`, `inputs` and `stages`", 1)
    faults.raise_if_any()
    document.data = value
    return document


def parse_value(text: str, budget: Budget | None = None) -> Any:
    """One YAML value, as `--set` gives it. Raises `ValueError` with what is wrong."""
    scratch = Document(data={}, budget=budget or Budget())
    try:
        root = _compose(text, "value", scratch.budget)
    except InvalidRecipe as error:
        raise ValueError(error.errors[0].message if error.errors else error.detail) from error
    if root is None:
        return None
    faults = Faults()
    value = _Builder(scratch, faults).build(root, ())
    try:
        faults.raise_if_any()
    except InvalidRecipe as error:
        raise ValueError(error.errors[0].message) from error
    return value


def _compose(text: str, source: str, budget: Budget) -> yaml.Node | None:
    try:
        loader = _BoundedLoader(text, source, budget)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
        return node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        message = " ".join(part for part in (error.context, error.problem) if part)
        raise InvalidRecipe(
            f"the {source} is not valid YAML",
            errors=[ErrorLocation(location=f"line {line}", message=message)],
            hint="Nothing was started.",
        ) from error
    except yaml.YAMLError as error:
        # Characters that YAML does not allow, such as NUL.
        raise InvalidRecipe(
            f"the {source} is not valid YAML",
            errors=[ErrorLocation(location="line 1", message=" ".join(str(error).split()))],
        ) from error


class _BoundedLoader(CoreLoader):
    """Bounds depth and size before it goes deeper."""

    def __init__(self, text: str, source: str, budget: Budget) -> None:
        super().__init__(text)
        self._source = source
        self._budget = budget
        self._values = self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._budget.check()
        inner = self.check_event(yaml.CollectionStartEvent)
        self._values += 1
        self._depth += inner
        if self._depth > MAX_DEPTH:
            self._refuse(f"is nested more than {MAX_DEPTH} deep")
        if self._values > MAX_VALUES:
            self._refuse(f"has over {MAX_VALUES:,} values")
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self._depth -= inner
        return node

    def _refuse(self, what: str) -> None:
        line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
        raise InvalidRecipe(
            f"the {self._source} {what}",
            errors=[ErrorLocation(location=f"line {line}", message=what)],
            code="recipe_too_large",
        )


class _Builder:
    """Nodes to data. An alias is expanded in place, and the total is bounded, which stops alias bombs."""

    def __init__(self, document: Document, faults: Faults) -> None:
        self._document = document
        self._faults = faults
        self._size = Size()
        self._open: list[yaml.Node] = []

    def build(self, node: yaml.Node | None, path: Path) -> Any:
        if node is None:
            return None
        line = node.start_mark.line + 1
        if path not in self._document.places:
            self._document.places[path] = Place(line=line)
        self._document.budget.check()
        self._size += Size(1, len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        refuse_large(f"line {line}", self._size, " once its aliases are expanded")
        if any(node is outer for outer in self._open):
            self._fault(path, line, "contains itself through an alias")
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return dict(self._items(node, path))
            if isinstance(node, yaml.SequenceNode):
                return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
            assert isinstance(node, yaml.ScalarNode)
            try:
                return scalar_value(node)
            except ValueError as error:
                self._fault(path, line, str(error))
                return None
        finally:
            self._open.pop()

    def _items(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(path, line, "has a key that is not a plain word")
                continue
            key = str(key_node.value)
            if len(key) > MAX_KEY:
                self._fault(path, line, f"has a key of {len(key):,} characters; the limit is {MAX_KEY}")
                continue
            if key in seen:
                self._fault((*path, key), line, f"is given twice, first in line {seen[key]}")
                continue
            seen[key] = line
            if key == "<<":
                self._fault((*path, key), line, "merge keys are not supported; write the fields out")
                continue
            self._document.places[(*path, key)] = Place(line=line)
            yield key, self.build(value_node, (*path, key))

    def _fault(self, path: Path, line: int, message: str) -> None:
        self._faults.add(f"{dotted(path) or 'recipe'} (line {line})", message, line, field=dotted(path))
