"""Resolves the references of a stage, and checks whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard.datasets.conversions.launch import MORE_ANSWERS
from steerboard.recipes.document import Document
from steerboard.recipes.draft import Draft, Reference
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import Outside, StageRef, Value
from steerboard.recipes.lookup import Catalogue, KnownDataset, KnownModel
from steerboard.recipes.places import Path
from steerboard.runs.kinds import adapter_misfit, misfit, needs_whole
from steerboard.runs.texts import all_held_out
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.methods import needed_method
from steerboard_contracts.specs.slots import Slot
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.wording import listed

Source = KnownDataset | KnownModel | StageRef


class Sources:
    """Resolves references, and checks that they fit."""

    def __init__(
        self,
        document: Document,
        drafts: Mapping[str, Draft],
        values: Mapping[str, Value],
        catalogue: Catalogue,
        faults: Faults,
    ) -> None:
        self._document = document
        self._drafts = drafts
        self._values = values
        self._catalogue = catalogue
        self._faults = faults

    def of(self, draft: Draft) -> dict[str, Source]:
        found: dict[str, Source] = {}
        slots = draft.kind.slots_of(draft.references)
        for slot_name, reference in draft.references.items():
            source = self._one(reference)
            if source is None:
                continue
            wrong = self._misfit(slots[slot_name.split(".")[0]], source, reference)
            if draft.kind.trains and isinstance(source, KnownDataset) and source.rows == source.held_out_rows:
                wrong = wrong or f"`{source.name}` has {all_held_out(source.rows)}, so none are left for training"
            if isinstance(source, KnownDataset):
                wrong = wrong or self._catalogue.rows_fault(source, draft.kind, slot_name.split(".")[0], draft.config)
            else:
                wrong = wrong or self._single_answers(draft, reference)
            setting = needs_whole(draft.config, slot_name.split(".")[0])
            if setting and isinstance(source, KnownModel) and source.adapter:
                wrong = wrong or adapter_misfit(source.name, setting)
            self._check_room(draft, slot_name, source)
            if wrong:
                chosen: Path | None = ("inputs", reference.name) if reference.to_input else None
                self._document.fault(self._faults, reference.path, wrong, field=chosen)
            found[slot_name] = source
        self._check_tokenizers(draft, found)
        self._check_complete(draft)
        return found

    def _single_answers(self, draft: Draft, reference: Reference) -> str | None:
        """Where a stage compares the answers of another one that writes one to each prompt."""
        if "group" not in draft.kind.needs_field.values():
            return None
        maker = None if reference.to_input else self._drafts.get(reference.name)
        while maker is not None and maker.kind.labels:
            of = maker.references.get("data") or maker.references.get("data.0")
            maker = None if of is None or of.to_input else self._drafts.get(of.name)
        answers = None if maker is None or maker.config is None else maker.kind.answers
        if maker is None or answers is None or answers(maker.config) > 1:
            return None
        return f"`{maker.name}` writes one answer to each prompt, and there is nothing to compare. {MORE_ANSWERS}"

    def _check_tokenizers(self, draft: Draft, found: Mapping[str, Source]) -> None:
        start = found.get("model")
        if not isinstance(draft.config, TrainingConfig) or not isinstance(start, KnownModel):
            return
        for name in needed_method(draft.config.method).given_tokens(draft.config):
            other = found.get(name)
            fault = self._catalogue.tokenizer_fault(start, other) if isinstance(other, KnownModel) else None
            if fault is not None:
                self._document.fault(self._faults, draft.references[name].path, fault)

    def _check_room(self, draft: Draft, slot_name: str, source: Source | None) -> None:
        if slot_name != "model" or not isinstance(draft.config, TrainingConfig):
            return
        window = source.window if isinstance(source, KnownModel) else None
        fault = draft.config.room_fault(window) if window else None
        if fault is not None:
            self._document.fault(self._faults, (*draft.path, "max_new_tokens"), fault)

    def _one(self, reference: Reference) -> Source | None:
        name, path = reference.name, reference.path
        if not reference.to_input:
            if name in self._document.data["stages"]:
                return self._output(reference)
            message = f"unknown stage `{name}`"
            if name in self._values:
                message += f"; the input is written `${name}`"
            else:
                message += did_you_mean(name, self._document.data["stages"])
            self._document.fault(self._faults, path, message)
            return None
        if name not in self._values:
            message = f"unknown input `{name}`"
            if name in self._document.data["stages"] and name not in (self._document.data.get("inputs") or {}):
                message += f"; the output of the stage is written `{name}`, without `$`"
            elif name not in (self._document.data.get("inputs") or {}):
                message += did_you_mean(name, self._values)
            else:
                return None  # its declaration is at fault, which is already reported
            self._document.fault(self._faults, path, message)
            return None
        value = self._values[name]
        if isinstance(value, Outside):  # pragma: no cover - implied.py replaced every one
            raise AssertionError(f"no base stage for {value.source}")
        if value is None and not self._faults.mentions("inputs"):
            self._document.fault(
                self._faults, path, f"the optional input `{name}` is not given, and nothing replaces it"
            )
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
        self._document.fault(
            self._faults, reference.path, f"the stage `{reference.name}` makes no {reference.output}: {makes}"
        )
        return None

    def _misfit(self, slot: Slot, source: Source, reference: Reference) -> str | None:
        if isinstance(source, StageRef):
            maker = self._drafts.get(source.stage)
            if maker is None:
                return None  # the stage itself is at fault
            makes, thing = source.output or maker.kind.made(maker.written), maker.kind.makes_thing
            what = f"`{reference.text}` ({maker.kind.word}) makes " + (
                "a report, which no stage takes as input" if makes is None else _describe(thing, makes)
            )
        elif isinstance(source, KnownModel):
            makes, thing = source.role, "model"
            what = f"`{source.name}` is {_describe(thing, makes)}"
        else:
            makes, thing = source.kind, "dataset"
            what = f"`{source.name}` is {_describe(thing, makes)}"
        if thing == slot.thing and makes in slot.allowed:
            return None
        return misfit(slot, what, makes, source.name if isinstance(source, KnownDataset) else None)

    def _check_complete(self, draft: Draft) -> None:
        stage: dict[str, Any] = self._document.data["stages"][draft.name]
        for slot_name, slot in draft.kind.slots.items():
            elsewhere = (slot_name == "model" and draft.kind.asks_endpoint and stage.get("endpoint") is not None) or (
                slot_name == "rewards" and stage.get("decides") is True and stage.get("judge") is not None
            )
            if slot.required and slot_name not in stage and not elsewhere:
                what = "a model" if slot.thing == "model" else "a dataset"
                self._document.fault(self._faults, draft.path, f"needs `{slot_name}`: {what}")
        if isinstance(draft.config, TrainingConfig):
            lacking = draft.config.input_fault(draft.references)
            if lacking is not None:
                self._document.fault(self._faults, draft.path, lacking)
            misplaced = needed_method(draft.config.method).placement_fault(draft.config, draft.references)
            if misplaced is not None:
                self._document.fault(self._faults, (*draft.path, "placement"), misplaced)
        for field, slot_name in draft.kind.lists.items():
            items, given = stage.get(field), sum(n.startswith(f"{slot_name}.") for n in draft.references)
            if field != slot_name and isinstance(items, list) and items and len(items) != given:
                message = f"has {len(items)} items for {given} of `{slot_name}`"
                self._document.fault(self._faults, (*draft.path, field), message)
        self._check_prompts(draft, stage)
        if draft.kind.brings_in and str(stage.get("source", "")).startswith("random:") and not stage.get("data"):
            self._document.fault(
                self._faults, draft.path, "needs `data`: the tokenizer of a random model is trained on it"
            )

    def _check_prompts(self, draft: Draft, stage: dict[str, Any]) -> None:
        """From where they come, and who is asked."""
        written_out = draft.kind.written_out
        for slot_name, field in written_out.items():
            if slot_name in stage and stage.get(field):
                message = f"has both `{field}` and `{slot_name}`; use one of them"
                self._document.fault(self._faults, (*draft.path, field), message)
            if slot_name not in stage and not stage.get(field):
                self._document.fault(self._faults, draft.path, f"needs `{slot_name}`, or `{field}` written out")
        if draft.kind.asks_endpoint is None or stage.get("endpoint") is None:
            return
        if "model" in stage or any(stage.get(field) for field in written_out.values()):
            message = "an endpoint takes the place of `model`"
            if written_out:
                message += f", and is asked for the rows of `{next(iter(written_out))}` only"
            self._document.fault(self._faults, (*draft.path, "endpoint"), message)


def _describe(thing: str | None, makes: str) -> str:
    return f"a model of role {makes}" if thing == "model" else f"a dataset of kind {makes}"
