"""A recipe file as data, with the line of every key and item, so that each error can name its place.

ruamel.yaml has such lines too, but stops at the first key that is given twice, merges `<<`, recurses without a bound,
expands no alias within one, and reads `1_000` and `0b11` as numbers and 2020-01-01 as a date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from steerboard.recipes.errors import Faults, InvalidRecipe
from steerboard.recipes.limits import MAX_BYTES, MAX_DEPTH, MAX_KEY, MAX_VALUES, Budget, Size, refuse_large
from steerboard.recipes.places import Node, Path, Place, dotted
from steerboard.recipes.scalars import CoreLoader, scalar_value
from steerboard_contracts.errors import ErrorLocation


def parse(text: str, budget: Budget) -> Node:
    """Read a file, which must hold a mapping. Raises `InvalidRecipe` with all structural faults (syntax stops at the
    first)."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise InvalidRecipe(f"the recipe is {size:,} bytes long; the limit is {MAX_BYTES:,}", code="recipe_too_large")
    faults = Faults()
    root = _built(_compose(text, "recipe", budget), faults, budget)
    if not isinstance(root.value, dict):
        faults.add("recipe (line 1)", "must be a mapping with `name`, `inputs` and `stages`", 1)
    faults.raise_if_any()
    return root


def parse_value(text: str, budget: Budget) -> Any:
    """One YAML value, as `--set` gives it. Raises `ValueError` with what is wrong."""
    try:
        root = _compose(text, "value", budget)
    except InvalidRecipe as error:
        raise ValueError(error.errors[0].message if error.errors else error.detail) from error
    faults = Faults()
    node = _built(root, faults, budget)
    if faults:
        raise ValueError(faults.ordered()[0].message)
    return node.value


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


def _built(root: yaml.Node | None, faults: Faults, budget: Budget) -> Node:
    return Node(None, Place(1, 1)) if root is None else _Builder(faults, budget).build(root, ())


class _Builder:
    """YAML's nodes to ours. An alias is expanded in place, and the total is bounded, which stops alias bombs."""

    def __init__(self, faults: Faults, budget: Budget) -> None:
        self._faults = faults
        self._budget = budget
        self._size = Size()
        self._open: list[yaml.Node] = []

    def build(self, node: yaml.Node, path: Path, of_key: Place | None = None) -> Node:
        line = node.start_mark.line + 1
        place = of_key or Place(line, node.start_mark.column + 1)
        self._budget.check()
        self._size += Size(1, len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        refuse_large(f"line {line}", self._size, " once its aliases are expanded")
        if any(node is outer for outer in self._open):
            self._fault(path, line, "contains itself through an alias")
            return Node(None, place)
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return Node.mapping(self._items(node, path), place)
            if isinstance(node, yaml.SequenceNode):
                return Node.sequence((self.build(item, (*path, i)) for i, item in enumerate(node.value)), place)
            assert isinstance(node, yaml.ScalarNode)
            return Node(scalar_value(node), place)
        except ValueError as error:
            self._fault(path, line, str(error))
            return Node(None, place)
        finally:
            self._open.pop()

    def _items(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Node]]:
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
            yield key, self.build(value_node, (*path, key), Place(line, key_node.start_mark.column + 1))

    def _fault(self, path: Path, line: int, message: str) -> None:
        self._faults.add(f"{dotted(path) or 'recipe'} (line {line})", message, line, field=dotted(path))
