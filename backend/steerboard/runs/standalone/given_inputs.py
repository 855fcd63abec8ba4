"""The inputs that are named for a run: what the project has by these names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from steerboard.runs.launch.lookup import Catalogue, KnownDataset, KnownModel
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.files.base_sources import source_type
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import Slot


def given_inputs(
    kind: RunKindSpec, names: Mapping[str, str], catalogue: Catalogue, faults: list[ErrorLocation]
) -> dict[str, KnownDataset | KnownModel | None]:
    """The inputs by name. None: a model from outside, or what the project does not have, which is added to `faults`.
    Inputs that the kind does not take are left out, and are faults, too."""
    inputs: dict[str, KnownDataset | KnownModel | None] = {}
    slots = kind.slots_of(names)
    for name, ref in names.items():
        slot = slots.get(name.partition(".")[0])
        if slot is None or not re.fullmatch(r"[a-z]+\.\d+" if slot.many else r"[a-z0-9_]+", name):
            known = [f"{n}.0" if s.many else n for n, s in kind.slots.items()]
            message = f"is not an input of {kind.word}{did_you_mean(name, known)}"
            faults.append(ErrorLocation(location=f"inputs.{name}", message=message))
            continue
        inputs[name] = None
        if is_outside(slot, ref):
            continue
        inputs[name] = catalogue.dataset(ref) if slot.thing == "dataset" else catalogue.model(ref)
        if inputs[name] is None:
            others = catalogue.dataset_names() if slot.thing == "dataset" else catalogue.model_names()
            message = f"there is no {slot.thing} {ref!r}" + did_you_mean(ref, others)
            faults.append(ErrorLocation(location=f"inputs.{name}", message=message))
    return inputs


def is_outside(slot: Slot, ref: str) -> bool:
    """Whether a folder, an upload or a hub name is meant: no name in a project has their characters."""
    return slot.thing == "model" and source_type(ref) in ("folder", "upload", "hub")
