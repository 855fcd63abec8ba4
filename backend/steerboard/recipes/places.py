"""The values of a recipe, each with the place that it comes from. None is changed: what sets one gives another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Path = tuple[str | int, ...]


def dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)


@dataclass(frozen=True)
class Place:
    """The place that a value comes from: a line and a column of the file (from 1), or the override that set it."""

    line: int | None = None
    column: int | None = None
    override: str | None = None

    def __str__(self) -> str:
        return f"--set {self.override}" if self.override is not None else f"line {self.line}"


@dataclass(frozen=True, slots=True)
class Node:
    """`value` is plain data; `inner` has what of it has a place of its own, by key or index. `derived`: the planner
    wrote it, with everything below it."""

    value: Any
    place: Place
    inner: Mapping[str | int, Node] = field(default_factory=dict)
    derived: bool = False

    @classmethod
    def mapping(cls, items: Iterable[tuple[str, Node]], place: Place) -> Node:
        nodes: dict[str | int, Node] = dict(items)
        return cls({key: node.value for key, node in nodes.items()}, place, nodes)

    @classmethod
    def sequence(cls, items: Iterable[Node], place: Place) -> Node:
        nodes = list(items)
        return cls([node.value for node in nodes], place, dict(enumerate(nodes)))

    def at(self, *path: str | int) -> Node:
        """The value there, at the place of what holds it unless it has its own."""
        node = self
        for part in path:
            node = node.inner.get(part) or Node(node.value[part], node.place)
        return node

    @property
    def items(self) -> list[Node]:
        """The items of a list."""
        return [self.at(i) for i in range(len(self.value))]

    def trail(self, path: Path) -> list[Node]:
        """What has a place on the way down to a path, which need not be there: the last one is the nearest to it."""
        nodes = [self]
        for part in path:
            if part not in nodes[-1].inner:
                break
            nodes.append(nodes[-1].inner[part])
        return nodes

    def put(self, path: Path, node: Node) -> Node:
        """This value with another one at a path, whose parent must be there."""
        return self.put_all({path: node})

    def put_all(self, nodes: Mapping[Path, Node]) -> Node:
        """This value with others at several paths, none of which is below another."""
        if not nodes or () in nodes:
            return nodes.get((), self)
        below: dict[str | int, dict[Path, Node]] = {}
        for path, node in nodes.items():
            below.setdefault(path[0], {})[path[1:]] = node
        inner = {part: some[()] if () in some else self.at(part).put_all(some) for part, some in below.items()}
        value: Any = {**self.value} if isinstance(self.value, dict) else [*self.value]
        for part, node in inner.items():
            value[part] = node.value
        return replace(self, value=value, inner={**self.inner, **inner})

    def without(self, key: str) -> Node:
        """This mapping without a key."""
        value, inner = {**self.value}, {**self.inner}
        del value[key]
        inner.pop(key, None)
        return replace(self, value=value, inner=inner)
