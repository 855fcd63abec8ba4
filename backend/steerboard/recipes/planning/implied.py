"""What a recipe leaves unsaid is written into it before it is checked, so that implied stages obey the same rules.

- a base model that is not in the registry: a `base` stage, its tokenizer trained on all datasets of the recipe;
- no `$instructions`: the prompts of the preferences with their chosen side;
- no `$prompts`: the prompts of instructions and preferences;
- no dataset of answers with thumbs: the preferences, for methods that read pairs as such answers;
- `independent` among the judges of an evaluation: a second reward model on the other half of the preferences;
- an evaluation's prompts, labelled data and preferences: those of the stages it judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import DatasetDeclaration, Declaration, Outside, StageRef, Value
from steerboard.recipes.places import Node, Path, Place
from steerboard.recipes.recipe import Recipe, Stage
from steerboard.runs.launch.lookup import Catalogue, KnownDataset
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import RANDOM_BASES, source_type
from steerboard_contracts.methods import learns_from_rewards, method_of
from steerboard_contracts.wording import listed

INDEPENDENT = "independent"


@dataclass(frozen=True)
class Filled:
    """A complete recipe, and the values of its inputs. `stages`: the names of those added; `notes` say what was
    done, for people."""

    recipe: Recipe
    values: Mapping[str, Value]
    stages: list[str]
    notes: list[str]


def fill_implied(
    recipe: Recipe,
    declared: Mapping[str, Declaration],
    values: Mapping[str, Value],
    catalogue: Catalogue,
    faults: Faults,
) -> Filled:
    filling = _Filling(recipe, declared, values, catalogue, faults)
    filling.instructions()
    filling.prompts()
    filling.unpaired()
    filling.bases()
    for name, stage in recipe.stages.items():
        if stage.evaluates:
            filling.independent(name)
            filling.evaluation(name)
    return Filled(filling.recipe, filling.values, filling.added, filling.notes)


class _Filling:
    """The recipe as far as it has been filled in."""

    def __init__(
        self,
        recipe: Recipe,
        declared: Mapping[str, Declaration],
        values: Mapping[str, Value],
        catalogue: Catalogue,
        faults: Faults,
    ) -> None:
        self.recipe = recipe
        self.values = {**values}
        self.added: list[str] = []
        self.notes: list[str] = []
        self._declared = declared
        self._catalogue = catalogue
        self._faults = faults

    def _add(self, name: str, fields: dict[str, Any], place: Place) -> str:
        free = name if name not in self.recipe.stages else f"{name}-input"
        self.recipe = self.recipe.with_stage(Stage(free, Node(fields, place, derived=True), ("stages", free)))
        self.added.append(free)
        return free

    def _put(self, stage: str, field: str, value: Any, place: Place, *, derived: bool = True) -> None:
        changed = self.recipe.stages[stage].put((field,), value, place, derived=derived)
        self.recipe = self.recipe.with_stage(changed)

    def _input_place(self, name: str) -> Place:
        return self.recipe.place(("inputs", name))

    def _given(self, *kinds: str) -> dict[str, KnownDataset]:
        """Dataset inputs of these kinds that have a value of their own, by input name."""
        datasets = {}
        for name, declared in self._declared.items():
            value = self.values.get(name)
            if not (isinstance(value, KnownDataset) and isinstance(declared, DatasetDeclaration)):
                continue
            if value.kind == declared.kind and value.kind in kinds:
                datasets[name] = value
        return datasets

    def _absent(self, kind: str) -> list[str]:
        return [
            name
            for name, declared in self._declared.items()
            if isinstance(declared, DatasetDeclaration) and declared.kind == kind and self.values.get(name) is None
        ]

    def instructions(self) -> None:
        preferences = self._given("preferences")
        for name in self._absent("instructions"):
            if not preferences:
                continue
            source, dataset = next(iter(preferences.items()))
            fields = {
                "run": "mix",
                "parts": [{"data": f"${source}", "side": "chosen", "share": "auto"}],
                "size": max(1, dataset.rows),
            }
            stage = self._add(name, fields, self._input_place(name))
            self.values[name] = StageRef(stage)
            self.notes.append(f"${name} is not given: the prompts of ${source} with their chosen side are taken")
            self._drop_doubled_parts(name, source)

    def _drop_doubled_parts(self, name: str, source: str) -> None:
        """A mixture that draws on the preferences already holds these very rows."""
        for stage in self.recipe.stages.values():
            parts = stage.fields.get("parts") if stage.name not in self.added else None
            if not isinstance(parts, list):
                continue
            mappings = [part if isinstance(part, dict) else {"data": part} for part in parts]
            holds_them = any(
                p.get("data") == f"${source}" and p.get("side", "both") in ("both", "chosen") for p in mappings
            )
            written = stage.node.at("parts")
            left = [item for item, p in zip(written.items, mappings, strict=True) if p.get("data") != f"${name}"]
            if holds_them and len(left) < len(parts):
                node = stage.node.put(("parts",), Node.sequence(left, written.place))
                self.recipe = self.recipe.with_stage(replace(stage, node=node))
                self.notes += [
                    f"{stage.name} leaves the part ${name} out: its rows are the chosen side of ${source}, also a part"
                ] * (len(parts) - len(left))

    def prompts(self) -> None:
        texts = self._given("instructions", "preferences")
        for name in self._absent("prompts"):
            if not texts:
                continue
            if len(texts) == 1:
                # The prompts of one dataset need no stage: generation reads the prompts of any kind.
                only = next(iter(texts))
                self.values[name] = texts[only]
                self.notes.append(f"${name} is not given: the prompts of ${only} are taken")
                continue
            fields = {
                "run": "mix",
                "parts": [
                    {"data": f"${text}", "share": "auto"}
                    | ({"side": "chosen"} if dataset.kind == "preferences" else {})
                    for text, dataset in texts.items()
                ],
                "size": max(1, sum(dataset.rows for dataset in texts.values())),
            }
            stage = self._add(name, fields, self._input_place(name))
            self.values[name] = StageRef(stage)
            self.notes.append(f"${name} is not given: the prompts of {listed(f'${t}' for t in texts)} are taken")

    def unpaired(self) -> None:
        """Methods of pairs that are not told apart read preferences as well; others refuse them in their slot."""
        preferences = self._given("preferences")
        for name in self._absent("unpaired"):
            if preferences:
                source, dataset = next(iter(preferences.items()))
                self.values[name] = dataset
                self.notes.append(f"${name} is not given: both sides of ${source} are taken, each with its thumb")

    def bases(self) -> None:
        inputs: dict[str, Path] = {}
        for name, value in list(self.values.items()):
            if isinstance(value, Outside):
                fields = {"run": "base", "source": value.source}
                base = self._add(name, fields, self._input_place(name))
                self.values[name] = StageRef(base)
                inputs[base] = ("inputs", name)
        for stage in self.recipe.stages.values():
            if stage.run == "base" and isinstance(stage.fields.get("source"), str):
                self._complete_base(stage, inputs.get(stage.name, (*stage.path, "source")))

    def _complete_base(self, stage: Stage, written: Path) -> None:
        """`written`: where the recipe names the source."""
        place = self.recipe.place((*stage.path, "source"))
        source: str = stage.fields["source"]
        kind = source_type(source)
        if kind is None:
            message = f"there is no base model `{source}`" + did_you_mean(source, RANDOM_BASES)
            self.recipe.fault(self._faults, written, message)
        elif kind == "random" and not stage.fields.get("data"):
            texts = self._given("instructions", "preferences", "prompts")
            self._put(stage.name, "data", [f"${name}" for name in texts], place)
        elif kind in ("folder", "upload"):
            try:
                pinned = self._catalogue.pinned(source)
            except BadInput as error:
                self.recipe.fault(self._faults, written, error.detail, error.code)
                return
            self._put(stage.name, "fingerprint", pinned.fingerprint, place, derived=False)
            self._put(stage.name, "source", pinned.source, place, derived=False)

    def independent(self, evaluate: str) -> None:
        stages, rewards = self.recipe.stages, self.recipe.stages[evaluate].fields.get("rewards")
        if not isinstance(rewards, list) or INDEPENDENT not in rewards or INDEPENDENT in stages:
            return
        at = ("stages", evaluate, "rewards", rewards.index(INDEPENDENT))
        # A recipe whose evaluation names no other reward model means the twin of the one that it trains.
        named = (stages[name] for name in (*rewards, *stages) if isinstance(name, str) and name in stages)
        first = next((stage for stage in named if _has_halves(stage)), None)
        if first is None:
            message = "`independent` is the twin of a reward model that this recipe trains, and it trains none"
            self.recipe.fault(self._faults, at, message)
            return
        place, half = self.recipe.place(at), first.fields.get("half")
        if half is None:
            half = "a"
            self._put(first.name, "half", half, place)
        self._add(INDEPENDENT, {**first.fields, "half": "a" if half == "b" else "b"}, place)
        self.notes.append(
            f"{INDEPENDENT} is a second reward model like {first.name}; each trains on its own half of the preferences"
        )

    def evaluation(self, name: str) -> None:
        stage = self.recipe.stages[name]
        references = {"data": self._evaluation_prompts()}
        if stage.fields.get("decides") is not True:
            # One that decides compares rewards of one model, so z units and accuracy cost scoring and change nothing.
            references["labelled"] = self._labelled(stage)
            references["preferences"] = next(iter(self._fields_of(stage.fields.get("rewards"), "data")), None)
        for slot, reference in references.items():
            if slot not in stage.fields and reference is not None:
                self._put(name, slot, reference, self.recipe.place(stage.path))

    def _evaluation_prompts(self) -> str | None:
        for kind in ("prompts", "preferences", "instructions"):
            for name, declared in self._declared.items():
                usable = self.values.get(name) is not None
                if isinstance(declared, DatasetDeclaration) and declared.kind == kind and usable:
                    return f"${name}"
        for stage in self.recipe.stages.values():
            answered = stage.fields.get("data") if stage.run == "generate" else None
            if isinstance(answered, str) and answered:
                return answered
        return None

    def _labelled(self, stage: Stage) -> str | None:
        """The data of the first entrant that learned from rewards, or the one scored dataset there is."""
        entrants = stage.fields.get("entrants")
        names = [e.get("model") if isinstance(e, dict) else e for e in entrants] if isinstance(entrants, list) else []
        stages = self.recipe.stages
        trained = [n for n in names if isinstance(n, str) and n in stages]
        trained = [n for n in trained if learns_from_rewards(stages[n].fields.get("method"))]
        scored = [name for name, stage in stages.items() if stage.run == "score"]
        return next(iter([*self._fields_of(trained, "data"), *scored]), None)

    def _fields_of(self, names: Any, key: str) -> list[str]:
        """This field of these stages, where it is a reference."""
        if not isinstance(names, list):
            return []
        stages = [self.recipe.stages[name] for name in names if isinstance(name, str) and name in self.recipe.stages]
        return [stage.fields[key] for stage in stages if isinstance(stage.fields.get(key), str) and stage.fields[key]]


def _has_halves(stage: Stage) -> bool:
    """Whether it makes a reward model of either half of the preferences."""
    method = method_of(stage.fields.get("method"))
    return method is not None and method.role == "reward" and method.halves
