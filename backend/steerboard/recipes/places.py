"""The place of each value of a recipe, kept as a tree: what is below a path is found without a look at all others."""

from __future__ import annotations

from dataclasses import dataclass, field

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where a value comes from: a line of the file (from 1), or the override that set it."""

    line: int | None = None
    override: str | None = None

    def __str__(self) -> str:
        return f"--set {self.override}" if self.override is not None else f"line {self.line}"


@dataclass
class _Node:
    place: Place | None = None
    below: dict[str | int, _Node] = field(default_factory=dict)

    def copy(self) -> _Node:
        return _Node(self.place, {part: node.copy() for part, node in self.below.items()})


class Places:
    """A mapping from paths to places, as far as the planner needs one."""

    def __init__(self) -> None:
        self._root = _Node()

    def __contains__(self, path: Path) -> bool:
        node = self._at(path)
        return node is not None and node.place is not None

    def __getitem__(self, path: Path) -> Place:
        node = self._at(path)
        if node is None or node.place is None:
            raise KeyError(path)
        return node.place

    def __setitem__(self, path: Path, place: Place) -> None:
        """What is below the path keeps its places."""
        self._made(path).place = place

    def nearest(self, path: Path) -> Place | None:
        """The place of a path, or of its nearest ancestor that has one."""
        node, found = self._root, self._root.place
        for part in path:
            inner = node.below.get(part)
            if inner is None:
                break
            node, found = inner, inner.place or found
        return found

    def replace(self, path: Path, place: Place) -> None:
        """Notes the place of a value that is another one now: what was below it is forgotten."""
        node = self._made(path)
        node.place, node.below = place, {}

    def copy(self, source: Path, target: Path) -> None:
        """`target` and everything below it get the places of `source`."""
        found = self._at(source)
        copied = _Node() if found is None else found.copy()
        copied.place = copied.place or Place(line=1)
        node = self._made(target)
        node.place, node.below = copied.place, copied.below

    def remove_item(self, path: Path, index: int) -> None:
        """Removes an item of a list: the places of those behind it move up with them."""
        node = self._at(path)
        if node is None:
            return
        node.below = {
            part - 1 if isinstance(part, int) and part > index else part: inner
            for part, inner in node.below.items()
            if part != index
        }

    def _at(self, path: Path) -> _Node | None:
        node: _Node | None = self._root
        for part in path:
            node = None if node is None else node.below.get(part)
        return node

    def _made(self, path: Path) -> _Node:
        node = self._root
        for part in path:
            node = node.below.setdefault(part, _Node())
        return node
