"""Resolves the references of a stage, and shows what is wrong with it at its lines."""

from __future__ import annotations

from collections.abc import Mapping

from steerboard.recipes.draft import Draft, Reference
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import Outside, StageRef, Value
from steerboard.recipes.recipe import Recipe
from steerboard.runs.launch.lookup import Catalogue, KnownDataset, KnownModel
from steerboard.runs.launch.stage_check import Given, Made, ResolvedStage, StageFault, stage_faults
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.wording import listed

Source = KnownDataset | KnownModel | StageRef


class Sources:
    """The sources of the stages of one recipe."""

    def __init__(
        self,
        recipe: Recipe,
        drafts: Mapping[str, Draft],
        values: Mapping[str, Value],
        catalogue: Catalogue,
        faults: Faults,
    ) -> None:
        self._recipe = recipe
        self._drafts = drafts
        self._values = values
        self._catalogue = catalogue
        self._faults = faults

    def of(self, draft: Draft) -> dict[str, Source]:
        """The sources by input name, without those that are at fault themselves."""
        sources = {
            name: kept for name, reference in draft.references.items() if (kept := self._source(reference)) is not None
        }
        given = {name: self._given(draft, name, sources.get(name)) for name in draft.references}
        raw, named = self._recipe.stages[draft.name].fields, {name.partition(".")[0] for name in given}
        for name in draft.kind.slots:
            if raw.get(name) and name not in named and not isinstance(raw[name], dict):
                given[name] = None  # what is written there is no reference, which was reported before
        for fault in stage_faults(ResolvedStage(draft.kind, draft.config, draft.written, given), self._catalogue):
            self._report(draft, fault)
        return sources

    def _report(self, draft: Draft, fault: StageFault) -> None:
        """Reports the fault at the line where what is wrong is written."""
        path, field = draft.path, None
        match fault.place:
            case ("inputs", name) if name in draft.references:
                reference = draft.references[name]
                path = reference.path
                field = ("inputs", reference.name) if reference.to_input else None
            case ("config", name) if draft.kind.lists.get(name) == name:
                return  # a recipe writes an item and its input as one
            case ("config", *rest):
                path = (*draft.path, *rest)
        self._recipe.fault(self._faults, path, fault.message, fault.code, field=field)

    def _given(self, draft: Draft, name: str, source: Source | None) -> Given | None:
        if not isinstance(source, StageRef):
            return source
        maker = self._drafts.get(source.stage)
        if maker is None:
            return None  # the stage itself is at fault
        makes, thing = source.output or maker.kind.made(maker.written), maker.kind.makes_thing
        text = draft.references[name].text
        return Made(text, maker.kind.word, thing, makes, self._writer_of_one(draft.references[name]))

    def _writer_of_one(self, reference: Reference) -> str | None:
        """The stage that writes these answers, if it writes one to each prompt."""
        maker = None if reference.to_input else self._drafts.get(reference.name)
        while maker is not None and maker.kind.makes == "labelled":
            of = maker.references.get("data") or maker.references.get("data.0")
            maker = None if of is None or of.to_input else self._drafts.get(of.name)
        generates = maker is not None and isinstance(maker.config, GenerateConfig) and maker.config.decoding.n == 1
        return maker.name if maker is not None and generates else None

    def _source(self, reference: Reference) -> Source | None:
        name, path = reference.name, reference.path
        if not reference.to_input:
            if name in self._recipe.stages:
                return self._output(reference)
            message = f"unknown stage `{name}`"
            if name in self._values:
                message += f"; the input is written `${name}`"
            else:
                message += did_you_mean(name, self._recipe.stages)
                message += (
                    f"; a model or dataset of the project is an input, written `${name}` and declared in `inputs`"
                )
            self._recipe.fault(self._faults, path, message)
            return None
        if name not in self._values:
            message = f"unknown input `{name}`"
            if name in self._recipe.stages and name not in (self._recipe.sections.get("inputs") or {}):
                message += f"; the output of the stage is written `{name}`, without `$`"
            elif name not in (self._recipe.sections.get("inputs") or {}):
                message += did_you_mean(name, self._values)
            else:
                return None  # its declaration is at fault, which is already reported
            self._recipe.fault(self._faults, path, message)
            return None
        value = self._values[name]
        if isinstance(value, Outside):  # pragma: no cover - implied.py replaced every one
            raise AssertionError(f"no base stage for {value.source}")
        if value is None and not self._faults.mentions("inputs"):
            self._recipe.fault(self._faults, path, f"the optional input `{name}` is not given, and nothing replaces it")
        return value

    def _output(self, reference: Reference) -> StageRef | None:
        """A stage's own output, or the further one that the reference names by its role."""
        maker = self._drafts.get(reference.name)
        if reference.output is None or maker is None:
            return StageRef(reference.name)
        roles = maker.kind.training.outputs if maker.kind.training else ()
        if reference.output in roles:
            return StageRef(reference.name, reference.output if reference.output != roles[0] else None)
        makes = f"it makes {listed(roles)}" if len(roles) > 1 else "it makes nothing else"
        self._recipe.fault(
            self._faults, reference.path, f"the stage `{reference.name}` makes no {reference.output}: {makes}"
        )
        return None
