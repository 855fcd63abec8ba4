"""What the platform knows of a run kind: its config, inputs and output, and how pages show it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from steerboard_contracts.fields import Config, RunKind
from steerboard_contracts.specs.method import HALF, MethodSpec
from steerboard_contracts.specs.slots import Slot, Thing
from steerboard_contracts.specs.work import RowCounts, Work, always_the_same
from steerboard_contracts.training import TrainingConfig

# What every training form shows first, around the fields that its method names.
_FIRST = ("lr", "batch", "epochs", "max_steps")
_THEN = ("max_length", "strategy", "lora")


@dataclass(frozen=True)
class RunKindSpec:
    """`word` is how a recipe names it: the run kind, with the method for `train`."""

    run: RunKind
    title: str
    about: str
    """What it is for, in one sentence."""
    config: type[Config]
    slots: Mapping[str, Slot]
    makes: str | None
    """Role of the model or kind of the dataset that comes out; None where nothing can be built on it."""
    makes_thing: Thing | None
    without: Mapping[str, Mapping[str, Slot]] = field(default_factory=dict)
    """By an optional input, the slots that take less where it is not given."""
    makes_by: tuple[str, Mapping[str, str]] | None = None
    """A field of the config that decides what comes out, and what by its value; `makes` is that of its default."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """By field of the config with one item for each input of a slot, the slot."""
    needs_field: Mapping[str, str] = field(default_factory=dict)
    """By kind of dataset, a field beyond those that it always has, which every row must have, such as `group`."""
    form: tuple[str, ...] = ()
    """Fields that the form shows first, in this order."""
    for_data: Mapping[str, str] = field(default_factory=dict)
    """By kind of dataset, what its page offers."""
    for_model: Mapping[str, str] = field(default_factory=dict)
    """By role of a model, what its page offers."""
    stage: str | None = None
    """The module of `steerboard_workers.stages` that does its work; None where it runs no stage."""
    evaluates: bool = False
    """Whether its work is an evaluation, which runs as its parts do."""
    of_evaluation: bool = False
    """Started by an evaluation, never by a recipe or a launch form."""
    unlisted: bool = False
    """Asked for by the platform's own pages and commands, in no list; it needs no device."""
    evaluation_input: Literal["prompts", "responses", "comparisons"] | None = None
    """What its stage reads of the evaluation that started it."""
    written_out: Mapping[str, str] = field(default_factory=dict)
    """By slot of prompts, the field of its config in which they can be written out instead."""
    asks_endpoint: Literal["always", "named"] | None = None
    """Whether its work is to ask an endpoint; `named`: where its config's `endpoint` names one, a stage's otherwise."""
    by_harness: bool = False
    """Whether its work is lm-evaluation-harness's, in an environment of its own."""
    reads_hub: bool = False
    """Whether its stage may download from a hub."""
    reads_folders: Literal["models", "tasks"] | None = None
    """Which folders of a worker its stage may read, of those that the operator allows."""
    work: Work = always_the_same
    """How much work a run is."""
    answers: Callable[[Any], int] | None = None
    """The number of answers to each prompt with this config, for a kind that makes a dataset of answers."""
    decodes_at_once: str | None = None
    """The field of its config for how many sequences the transformers engine continues together."""
    pass_tokens: str | None = None
    """The field of its config for how many tokens of given answers one pass reads."""
    may_change: tuple[str, ...] = ()
    """Fields that, where given, name what may be another tomorrow: no finished equal run is taken instead."""
    leaves: Literal["responses", "evaluation"] | None = None
    """By-products besides its outputs, which can be deleted: without it, an equal run does the work again."""
    resumes: Literal["checkpoint", "rows", "verdicts"] | None = None
    """What of its work is kept while it runs, so that the next attempt continues there; None where it starts again."""
    resumes_with: str | None = None
    """An input without which it starts again after all."""
    shared_cost: bool = False
    """Whether every method that learns from what it makes shares its cost (the paper's Table 3)."""
    without_effect: frozenset[str] = frozenset()
    """Fields of this kind alone that change nothing in its result."""
    training: MethodSpec | None = None
    result_version: int = 1
    """Raised with every change of what an equal run makes, so that no former result is taken for it."""
    place: int = 1000
    """Its position in lists; methods come first."""

    @property
    def method(self) -> str | None:
        return self.training.name if self.training else None

    @property
    def trains(self) -> bool:
        return self.training is not None

    @property
    def samples(self) -> bool:
        """Whether a model answers the prompts that it is given."""
        return bool(self.written_out)

    @property
    def labels(self) -> bool:
        """Whether it gives each row of a dataset a reward, and changes nothing else of it."""
        return self.makes == "labelled"

    @property
    def scores(self) -> bool:
        """Whether it gives the rows of a dataset the rewards of a model."""
        return self.labels and "reward" in self.slots

    @property
    def adds_up(self) -> bool:
        """Whether it makes one reward of the rewards of several datasets over the same rows."""
        return self.labels and any(slot.many for slot in self.slots.values())

    @property
    def grades(self) -> bool:
        """Whether a program gives the rows of a dataset their rewards, and no model does."""
        return self.labels and not self.scores and not self.adds_up

    @property
    def mixes(self) -> bool:
        """Whether it draws rows of several datasets, pairs among them, into one of instructions."""
        several = (slot for slot in self.slots.values() if slot.many)
        return self.makes == "instructions" and any("preferences" in slot.allowed for slot in several)

    @property
    def brings_in(self) -> bool:
        """Whether it brings in a base model, from the `source` of its config."""
        return self.makes == "base"

    @property
    def key(self) -> str:
        """What names it in an address: no method is called like a run kind."""
        return self.method or self.run

    @property
    def word(self) -> str:
        return f"{self.run} {self.method}" if self.method else self.run

    def slots_of(self, given: Collection[str]) -> dict[str, Slot]:
        """What each slot takes where these are given."""
        found = dict(self.slots)
        for name, slots in self.without.items():
            if name not in given:
                found |= slots
        return found

    def made(self, config: Mapping[str, Any]) -> str | None:
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
        makes_thing="model",
        form=(*_FIRST, *method.form, *_THEN),
        stage="train",
        resumes="checkpoint",
        for_data=dict.fromkeys(method.data, method.use),
        work=_samples_learned,
        training=method,
        result_version=method.result_version,
    )


def _samples_learned(config: TrainingConfig, data: Mapping[str, RowCounts]) -> float:
    rows = data.get("data", RowCounts())
    share = 0.5 if getattr(config, HALF, None) is not None else 1.0
    samples = (share * rows.train if rows.kept is None else rows.kept) * config.epochs
    return min(samples, config.max_steps * config.batch) if config.max_steps else samples
