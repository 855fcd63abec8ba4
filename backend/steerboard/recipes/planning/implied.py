"""What a recipe leaves unsaid is written into it before it is checked, so that implied stages obey the same rules.

- a base model that is not in the registry: a `base` stage, its tokenizer trained on all datasets of the recipe;
- no `$instructions`: the prompts of the preferences with their chosen side;
- no `$prompts`: the prompts of instructions and preferences;
- no dataset of answers with thumbs: the preferences, for methods that read pairs as such answers;
- `independent` among the judges of an evaluation: a second reward model on the other half of the preferences;
- an evaluation's prompts, labelled data and preferences: those of the stages it judges.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from steerboard.recipes.document import Document
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import DatasetDeclaration, Declaration, Outside, StageRef, Value
from steerboard.recipes.places import Path, Place
from steerboard.runs.launch.lookup import Catalogue, KnownDataset
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import RANDOM_BASES, source_type
from steerboard_contracts.methods import learns_from_rewards, method_of
from steerboard_contracts.run_kinds import kind_of
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.wording import listed

INDEPENDENT = "independent"


class Implied:
    """Adds stages to a document. `stages` are the names added, `notes` say what was done, for people."""

    def __init__(
        self,
        document: Document,
        declared: Mapping[str, Declaration],
        values: dict[str, Value],
        catalogue: Catalogue,
        faults: Faults,
    ) -> None:
        self._document = document
        self._declared = declared
        self._values = values
        self._catalogue = catalogue
        self._faults = faults
        self.stages: list[str] = []
        self.notes: list[str] = []

    def add_all(self) -> None:
        self._instructions()
        self._prompts()
        self._unpaired()
        self._bases()
        for name in list(self._raw):
            kind = self._kind(name)
            if kind is not None and kind.evaluates:
                self._independent(name)
                self._evaluation(name)

    @property
    def _raw(self) -> dict[str, Any]:
        stages: dict[str, Any] = self._document.data["stages"]
        return stages

    def _add(self, name: str, fields: dict[str, Any], place: Place | None) -> str:
        free = name if name not in self._raw else f"{name}-input"
        self._put(("stages", free), fields, place)
        self.stages.append(free)
        return free

    def _put(self, path: Path, value: Any, place: Place | None) -> None:
        self._document.put(path, value, place or Place(line=1))
        self._document.derived.add(path)

    def _input_place(self, name: str) -> Place | None:
        return self._document.place(("inputs", name))

    def _given(self, *kinds: str) -> dict[str, KnownDataset]:
        """Dataset inputs of these kinds that have a value of their own, by input name."""
        found = {}
        for name, declared in self._declared.items():
            value = self._values.get(name)
            if not (isinstance(value, KnownDataset) and isinstance(declared, DatasetDeclaration)):
                continue
            if value.kind == declared.kind and value.kind in kinds:
                found[name] = value
        return found

    def _absent(self, kind: str) -> list[str]:
        return [
            name
            for name, declared in self._declared.items()
            if isinstance(declared, DatasetDeclaration) and declared.kind == kind and self._values.get(name) is None
        ]

    def _instructions(self) -> None:
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
            self._values[name] = StageRef(stage)
            self.notes.append(f"${name} is not given: the prompts of ${source} with their chosen side are taken")
            self._drop_doubled_parts(name, source)

    def _drop_doubled_parts(self, name: str, source: str) -> None:
        """A mixture that draws on the preferences already holds these very rows."""
        for stage, fields in self._raw.items():
            parts = fields.get("parts") if isinstance(fields, dict) and stage not in self.stages else None
            if not isinstance(parts, list):
                continue
            mappings = [part if isinstance(part, dict) else {"data": part} for part in parts]
            holds_them = any(
                p.get("data") == f"${source}" and p.get("side", "both") in ("both", "chosen") for p in mappings
            )
            for i in reversed(range(len(mappings))):
                if holds_them and mappings[i].get("data") == f"${name}":
                    self._document.remove_item(("stages", stage, "parts"), i)
                    self.notes.append(
                        f"{stage} leaves the part ${name} out: its rows are the chosen side of ${source}, also a part"
                    )

    def _prompts(self) -> None:
        texts = self._given("instructions", "preferences")
        for name in self._absent("prompts"):
            if not texts:
                continue
            if len(texts) == 1:
                # The prompts of one dataset need no stage: generation reads the prompts of any kind.
                only = next(iter(texts))
                self._values[name] = texts[only]
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
            self._values[name] = StageRef(stage)
            self.notes.append(f"${name} is not given: the prompts of {listed(f'${t}' for t in texts)} are taken")

    def _unpaired(self) -> None:
        """Methods of pairs that are not told apart read preferences as well; others refuse them in their slot."""
        preferences = self._given("preferences")
        for name in self._absent("unpaired"):
            if preferences:
                source, dataset = next(iter(preferences.items()))
                self._values[name] = dataset
                self.notes.append(f"${name} is not given: both sides of ${source} are taken, each with its thumb")

    def _bases(self) -> None:
        inputs: dict[str, Path] = {}
        for name, value in list(self._values.items()):
            if isinstance(value, Outside):
                fields = {"run": "base", "source": value.source}
                stage = self._add(name, fields, self._input_place(name))
                self._values[name] = StageRef(stage)
                inputs[stage] = ("inputs", name)
        for stage, fields in self._raw.items():
            kind = self._kind(stage)
            if kind is not None and kind.brings_in and isinstance(fields.get("source"), str):
                self._complete_base(stage, fields, inputs.get(stage, ("stages", stage, "source")))

    def _complete_base(self, stage: str, fields: dict[str, Any], written: Path) -> None:
        """`written`: where the recipe names the source."""
        path: Path = ("stages", stage)
        place = self._document.place((*path, "source")) or Place(line=1)
        source: str = fields["source"]
        kind = source_type(source)
        if kind is None:
            message = f"there is no base model `{source}`" + did_you_mean(source, RANDOM_BASES)
            self._document.fault(self._faults, written, message)
        elif kind == "random" and not fields.get("data"):
            texts = self._given("instructions", "preferences", "prompts")
            self._put((*path, "data"), [f"${name}" for name in texts], place)
        elif kind in ("folder", "upload"):
            try:
                pinned = self._catalogue.pinned(source)
            except BadInput as error:
                self._document.fault(self._faults, written, error.detail, error.code)
                return
            self._document.put((*path, "fingerprint"), pinned.fingerprint, place)
            self._document.put((*path, "source"), pinned.source, place)

    def _independent(self, evaluate: str) -> None:
        rewards = self._raw[evaluate].get("rewards")
        if not isinstance(rewards, list) or INDEPENDENT not in rewards or INDEPENDENT in self._raw:
            return
        place = self._document.place(("stages", evaluate, "rewards", rewards.index(INDEPENDENT)))
        # A recipe whose evaluation names no other reward model means the twin of the one that it trains.
        trained = [r for r in (*rewards, *self._raw) if isinstance(r, str) and isinstance(self._raw.get(r), dict)]
        first = next((r for r in trained if self._has_halves(r)), None)
        if first is None:
            self._document.fault(
                self._faults,
                ("stages", evaluate, "rewards", rewards.index(INDEPENDENT)),
                "`independent` is the twin of a reward model that this recipe trains, and it trains none",
            )
            return
        half = self._raw[first].get("half")
        if half is None:
            half = "a"
            self._put(("stages", first, "half"), half, place)
        twin = {**copy.deepcopy(self._raw[first]), "half": "a" if half == "b" else "b"}
        self._add(INDEPENDENT, twin, place)
        self.notes.append(
            f"{INDEPENDENT} is a second reward model like {first}; each trains on its own half of the preferences"
        )

    def _has_halves(self, stage: str) -> bool:
        """Whether it makes a reward model of either half of the preferences."""
        method = method_of(self._raw[stage].get("method"))
        return method is not None and method.role == "reward" and method.halves

    def _evaluation(self, name: str) -> None:
        fields = self._raw[name]
        place = self._document.place(("stages", name))
        found = {
            "data": self._evaluation_prompts(),
            "labelled": self._labelled(fields),
            "preferences": next((d for d in self._fields_of(fields.get("rewards"), "data") if d), None),
        }
        if fields.get("decides") is True:
            # It compares rewards of one model: z units and accuracy would cost scoring, and change nothing.
            del found["labelled"], found["preferences"]
        for slot, ref in found.items():
            if slot not in fields and ref is not None:
                self._put(("stages", name, slot), ref, place)

    def _evaluation_prompts(self) -> str | None:
        for kind in ("prompts", "preferences", "instructions"):
            for name, declared in self._declared.items():
                usable = self._values.get(name) is not None
                if isinstance(declared, DatasetDeclaration) and declared.kind == kind and usable:
                    return f"${name}"
        for stage in self._raw:
            samples = self._kind(stage)
            for slot in samples.written_out if samples is not None else ():
                answered = next((data for data in self._fields_of([stage], slot) if data), None)
                if answered is not None:
                    return answered
        return None

    def _labelled(self, fields: dict[str, Any]) -> str | None:
        """The data of the first entrant that learned from rewards, or the one scored dataset there is."""
        entrants = fields.get("entrants")
        names = [e.get("model") if isinstance(e, dict) else e for e in entrants] if isinstance(entrants, list) else []
        stages = [n for n in names if isinstance(n, str) and isinstance(self._raw.get(n), dict)]
        trained = [n for n in stages if learns_from_rewards(self._raw[n].get("method"))]
        scored = [stage for stage in self._raw if (kind := self._kind(stage)) is not None and kind.scores]
        return next((d for d in self._fields_of(trained, "data") if d), scored[0] if scored else None)

    def _kind(self, stage: str) -> RunKindSpec | None:
        fields = self._raw[stage]
        return kind_of(fields.get("run"), fields.get("method")) if isinstance(fields, dict) else None

    def _fields_of(self, names: Any, key: str) -> list[str]:
        """This field of these stages, where it is a reference."""
        if not isinstance(names, list):
            return []
        stages = [self._raw.get(n) for n in names if isinstance(n, str)]
        return [s[key] for s in stages if isinstance(s, dict) and isinstance(s.get(key), str)]
