"""A recipe on its way to a plan: its sections as the file has them, and its stages, each value with its place.

Nothing is changed in place: each step of the planner takes a recipe and gives the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from steerboard.recipes.document import parse
from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_STAGES, Budget, Size, refuse_large, refuse_many, size_of
from steerboard.recipes.places import Node, Path, Place, dotted
from steerboard_contracts.complaints import complaints
from steerboard_contracts.run_kinds import kind_of
from steerboard_contracts.specs.run_kind import RunKindSpec

STAGES = "stages"


@dataclass(frozen=True)
class Stage:
    """A stage as it is written, which may be anything. `origin`: where the file has it, or what it is a copy of."""

    name: str
    node: Node
    origin: Path

    @property
    def path(self) -> Path:
        return (STAGES, self.name)

    @property
    def fields(self) -> Mapping[str, Any]:
        """Empty where it is no mapping."""
        return self.node.value if isinstance(self.node.value, dict) else {}

    @property
    def run(self) -> object:
        """The run kind as it is written."""
        return self.fields.get("run")

    @property
    def evaluates(self) -> bool:
        return self.run == "evaluate"

    @cached_property
    def kind(self) -> RunKindSpec | None:
        return kind_of(self.run, self.fields.get("method"))

    @cached_property
    def references(self) -> Mapping[Path, str]:
        """What it names and where: `model`, `rewards.0`, `parts.1.data`."""
        return dict(self._references())

    def _references(self) -> Iterator[tuple[Path, str]]:
        for slot in self.kind.slots if self.kind else ():
            value = self.fields.get(slot)
            if isinstance(value, str):
                yield (slot,), value
            for i, item in enumerate(value if isinstance(value, list) else ()):
                if isinstance(item, str):
                    yield (slot, i), item
                elif isinstance(item, dict):
                    inner = {key: item.get(key) for key in ("data", "model")}
                    yield from (((slot, i, key), name) for key, name in inner.items() if isinstance(name, str))

    @property
    def reads(self) -> set[str]:
        """The stages that it names."""
        return {stage_of(reference) for reference in self.references.values()}

    def put(self, at: Path, value: Any, place: Place | None = None, *, derived: bool = False) -> Stage:
        """`place`: by default that of what it replaces, or the nearest."""
        node = Node(value, place or self.node.trail(at)[-1].place, derived=derived)
        return replace(self, node=self.node.put(at, node))

    def naming(self, references: Mapping[Path, str]) -> Stage:
        """This stage with other references in place of its own."""
        changed = {at: replace(self.node.at(*at), value=reference) for at, reference in references.items()}
        return replace(self, node=self.node.put_all(changed))

    def rewired(self, names: Mapping[str, str]) -> Stage:
        """This stage with those that it names called by their new names."""
        known = {at: reference for at, reference in self.references.items() if stage_of(reference) in names}
        return self.naming({at: renamed(reference, names) for at, reference in known.items()})

    def widened(self, meant: Mapping[Path, Iterable[str]]) -> Stage:
        """This stage with several references in place of each of these, which are in lists: the item is there once for
        each."""
        at_item = {at[:2]: at for at in meant}
        lists: dict[Path, Node] = {}
        for slot in dict.fromkeys(at[0] for at in meant):
            written = self.node.at(slot)
            items: list[Node] = []
            for i, item in enumerate(written.items):
                at = at_item.get((slot, i))
                items += [item] if at is None else [item.put(at[2:], Node(name, item.place)) for name in meant[at]]
            lists[(slot,)] = Node.sequence(items, written.place)
        return replace(self, node=self.node.put_all(lists))


def stage_of(reference: str) -> str:
    """The stage of `stage` or `stage.output`."""
    return reference.partition(".")[0]


def renamed(reference: str, names: Mapping[str, str]) -> str:
    """The reference with its stage called by a new name, if it has one."""
    stage, dot, output = reference.partition(".")
    return names.get(stage, stage) + dot + output


def upstream_of(reads: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """The stage, and all that it needs. `reads`: by stage, what it names itself."""
    upstream: set[str] = set()
    waiting = [name]
    while waiting:
        stage = waiting.pop()
        if stage in reads and stage not in upstream:
            upstream.add(stage)
            waiting += reads[stage]
    return upstream


@dataclass(frozen=True)
class Recipe:
    """`file`: what was read, in which the stages are as they were then."""

    file: Node
    stages: Mapping[str, Stage]
    budget: Budget

    @classmethod
    def read(cls, text: str, budget: Budget | None = None) -> Recipe:
        """Raises `InvalidRecipe`, as `parse`. Without stages where `stages` is no mapping."""
        budget = budget or Budget()
        file = parse(text, budget)
        return cls(file, stages_in(file, (STAGES,)), budget)

    @property
    def sections(self) -> Mapping[str, Any]:
        """All that is not a stage, by its key in the file."""
        sections: Mapping[str, Any] = self.file.value
        return sections

    @property
    def data(self) -> dict[str, Any]:
        """The recipe as data, with its stages as they are now."""
        return {**self.sections, STAGES: {name: stage.node.value for name, stage in self.stages.items()}}

    def with_stages(self, stages: Iterable[Stage]) -> Recipe:
        """This recipe with other stages."""
        self.budget.check()
        return replace(self, stages={stage.name: stage for stage in stages})

    def with_stage(self, stage: Stage) -> Recipe:
        """This recipe with a stage in place of the one of its name, or after the others."""
        self.budget.check()
        return replace(self, stages={**self.stages, stage.name: stage})

    def put(self, path: Path, value: Any, place: Place) -> Recipe:
        """This recipe with another value in a section."""
        self.budget.check()
        return replace(self, file=self.file.put(path, Node(value, place)))

    def place(self, path: Path) -> Place:
        """The place of a path, or of its nearest ancestor that has one."""
        return self._trail(path)[-1].place

    def location(self, path: Path) -> str:
        """`stages.dt.lr (line 14)`."""
        return f"{dotted(path) or 'recipe'} ({self.place(path)})"

    def fault(
        self, faults: Faults, path: Path, message: str, code: str | None = None, field: Path | None = None
    ) -> None:
        """`field`: where a form shows it, if that is not where it was written."""
        self.budget.check()
        trail = self._trail(path)
        place = trail[-1].place
        derived = place.override is None and any(node.derived for node in trail)
        # A fault of a stage of which there are copies is one fault, not one for each.
        stage = self._stage(path)
        written = path if stage is None else (*stage.origin, *path[2:])
        of = f"{dotted(written)} ({place})" if written != path else None
        faults.add(
            self.location(path),
            message,
            place.line,
            column=place.column,
            field=dotted(field or path),
            derived=derived,
            code=code,
            of=of,
        )

    def invalid(
        self, faults: Faults, path: Path, error: ValidationError, model: type[BaseModel], more: Iterable[str] = ()
    ) -> None:
        """Pydantic's complaints about what is at `path`, validated as `model`: one fault for each place. `more` as for
        `complaints`."""
        stage = self._stage(path)
        given = self.file.at(*path) if stage is None else stage.node.at(*path[2:])
        for complaint in complaints(error, given.value, model, more, self.budget.check):
            self.fault(faults, (*path, *complaint.place), complaint.message)

    @property
    def size(self) -> Size:
        """The size of its stages as they are now."""
        return size_of({name: stage.node.value for name, stage in self.stages.items()})

    def check_size(self) -> None:
        """Counts what overrides have set, too. Raises `InvalidRecipe` (`recipe_too_large`)."""
        where = self.location((STAGES,))
        refuse_many(where, "stages", len(self.stages), MAX_STAGES)
        refuse_large(where, self.size)

    def _stage(self, path: Path) -> Stage | None:
        return self.stages.get(str(path[1])) if path[:1] == (STAGES,) and len(path) > 1 else None

    def _trail(self, path: Path) -> list[Node]:
        stage = self._stage(path)
        return self.file.trail(path) if stage is None else stage.node.trail(path[2:])


def stages_in(file: Node, path: Path) -> dict[str, Stage]:
    """The stages that the file has at a path; none where that is not a mapping."""
    value = file.at(*path).value if len(file.trail(path)) > len(path) else None
    names = value if isinstance(value, dict) else ()
    return {name: Stage(name, file.at(*path, name), (*path, name)) for name in names}
