"""What the platform knows of a run kind: its config, inputs and output, and what pages, launches and reuse ask."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from steerboard_contracts.fields import Config, RunKind
from steerboard_contracts.models import ModelRole
from steerboard_contracts.specs.method import HALF, MethodSpec
from steerboard_contracts.specs.slots import Slot, Thing
from steerboard_contracts.specs.work import RowCounts, Work, always_the_same
from steerboard_contracts.training import TrainingConfig

# What every training form shows first, around the fields that its method names.
_FIRST = ("lr", "batch", "epochs", "max_steps")
_THEN = ("max_length", "strategy", "lora")


@dataclass(frozen=True)
class RunKindSpec:
    """What several readers ask of every kind; what only one or two kinds do is where it is done, by their name."""

    run: RunKind
    title: str
    about: str
    """What it is for, in one sentence."""
    config: type[Config]
    slots: Mapping[str, Slot]
    without: Mapping[str, Mapping[str, Slot]] = field(default_factory=dict)
    """By an optional input, the slots that take less where it is not given."""
    makes: str | None = None
    """Role of the model or kind of the dataset that comes out; None where nothing can be built on it."""
    makes_by: tuple[str, Mapping[str, str]] | None = None
    """A field of the config that decides what comes out, and what by its value; `makes` is that of its default."""
    training: MethodSpec | None = None

    # Forms and pages.
    form: tuple[str, ...] = ()
    """Fields that the form shows first, in this order."""
    for_data: Mapping[str, str] = field(default_factory=dict)
    """By kind of dataset, what its page offers."""
    for_model: Mapping[str, str] = field(default_factory=dict)
    """By role of a model, what its page offers."""

    # Launching.
    lists: Mapping[str, str] = field(default_factory=dict)
    """By field of the config with one item for each input of a slot, the slot."""
    needs_field: Mapping[str, str] = field(default_factory=dict)
    """By kind of dataset, a field beyond those that it always has, which every row must have, such as `group`."""
    asks_endpoint: Literal["always", "named"] | None = None
    """Whether its work is to ask an endpoint; `named`: where its config's `endpoint` names one, a stage's otherwise."""
    work: Work = always_the_same
    """How much work a run is."""

    # Reuse of what is finished.
    may_change: tuple[str, ...] = ()
    """Fields that, where given, name what may be another tomorrow: no finished equal run is taken instead."""
    result_version: int = 1
    """Raised with every change of what an equal run makes, so that no former result is taken for it."""
    resumes: Literal["checkpoint", "rows", "verdicts"] | None = None
    """What of its work is kept while it runs, so that the next attempt continues there; None where it starts again."""

    @property
    def method(self) -> str | None:
        return self.training.name if self.training else None

    @property
    def makes_thing(self) -> Thing | None:
        if self.makes is None:
            return None
        return "model" if self.makes in get_args(ModelRole) else "dataset"

    @property
    def key(self) -> str:
        """What names it in an address: no method is called like a run kind."""
        return self.method or self.run

    @property
    def word(self) -> str:
        """How a recipe names it: the run kind, with the method for `train`."""
        return f"{self.run} {self.method}" if self.method else self.run

    def slots_of(self, given: Collection[str]) -> dict[str, Slot]:
        """What each slot takes where these are given."""
        combined = dict(self.slots)
        for name, slots in self.without.items():
            if name not in given:
                combined |= slots
        return combined

    def made(self, config: Mapping[str, object]) -> str | None:
        """What comes out of a run with this config; where a value is not a valid one, `makes`."""
        if self.makes_by is None:
            return self.makes
        name, made = self.makes_by
        return made.get(str(config.get(name)), self.makes)


def training(method: MethodSpec) -> RunKindSpec:
    """The run that trains by a method."""
    return RunKindSpec(
        run="train",
        title=method.title,
        about=method.about,
        config=method.config,
        slots=method.slots,
        makes=method.role,
        training=method,
        form=(*_FIRST, *method.form, *_THEN),
        for_data=dict.fromkeys(method.data, method.use),
        work=_samples_learned,
        result_version=method.result_version,
        resumes="checkpoint",
    )


def _samples_learned(config: TrainingConfig, data: Mapping[str, RowCounts]) -> float:
    rows = data.get("data", RowCounts())
    share = 0.5 if getattr(config, HALF, None) is not None else 1.0
    samples = (share * rows.train if rows.kept is None else rows.kept) * config.epochs
    return min(samples, config.max_steps * config.batch) if config.max_steps else samples
