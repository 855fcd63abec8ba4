"""Everything the platform knows about a training method, so no other code has to know the method's name."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.metric_order import FIRST_METRICS
from steerboard_contracts.models import POLICIES, ModelRole
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.placement import MODEL_ROLES, Role
from steerboard_contracts.samples import SampleKind
from steerboard_contracts.specs.slots import Slot, datasets, models
from steerboard_contracts.specs.tuning import TuningName
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.wording import listed

Reads = Literal["labels", "ends"]
"""What the forward pass reads: the tokens that predict a label, or the last real token of each sequence; of one that is
divided into steps, the last token of each step."""

Use = Literal["forward", "log_probs"]
"""What a method takes of a frozen model: forward passes at any step, or log pi of each training sequence, which is
computed (or found in a cache) before the first step, and for which the model does not stay in memory."""

LeftOut = Literal["equal_sides"]
"""Pairs that a method learns nothing of: of equal sides, without regard to the space around them."""

Need = Literal["both_thumbs", "two_prompts"]
"""What its training rows must have together: desirable and undesirable answers; more than one prompt."""

PreviewKind = Literal["selection", "weights"]
# What each preview takes, and which of it a method has to have in its config.
PREVIEWS: dict[PreviewKind, tuple[frozenset[str], frozenset[str]]] = {
    "selection": (frozenset({"threshold"}), frozenset({"threshold"})),
    "weights": (frozenset({"beta"}), frozenset({"beta", "max_weight", "self_normalised"})),
}

# The field of a config that names one half of the data to learn from.
HALF = "half"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class BadMethod(SteerboardError):
    """A method's description is not usable; the message explains why."""

    code = "bad_method"
    title = "The method cannot be used"


@dataclass(frozen=True)
class Frozen:
    """A further model that no step changes, such as a reference: an input of the run by this name.

    One that `reads` labels and is not `required` may be left out: the model that training starts from replaces it.
    `when`: a field of the config; where that is 0, false or none, the model is not loaded. `by_text`: one that reads
    ends may have another tokenizer than the model to train; then it has to be given its own tokens (`Passes.renderer`).
    `instead`: what can be done with one of another tokenizer, besides taking one of the same family.
    """

    name: str
    roles: frozenset[str]
    about: str
    required: bool = True
    uses: tuple[Use, ...] = ("forward",)
    reads: Reads = "labels"
    when: str | None = None
    by_text: bool = False
    instead: str = ""

    def used_by(self, config: TrainingConfig) -> bool:
        return self.when is None or bool(getattr(config, self.when))

    @property
    def role(self) -> Role:
        """Which of a placement's roles it has, where it stays."""
        return "rewards" if self.reads == "ends" else "reference"

    @property
    def stays(self) -> bool:
        """Whether it is in memory during training."""
        return "forward" in self.uses


@dataclass(frozen=True)
class Trained:
    """A further model that learns in the same steps, such as a critic: an input and an output, both named by its role.

    One that reads `ends` has a head of one number; it gives that number for each place that the method reads. Where it
    is not `required` and not given, it starts from the frozen model `like`, if that is given and reads the same tokens,
    and otherwise from the model that training starts from, with a fresh head.
    """

    role: ModelRole
    starts_from: frozenset[str]
    about: str
    required: bool = True
    reads: Reads = "ends"
    like: str | None = None


@dataclass(frozen=True)
class FurtherData:
    """A further dataset that a run may learn from besides its rows: an optional input by this name.

    `when`: a field of the config; where that is 0, false or none, the dataset is not read.
    """

    name: str
    kinds: tuple[SampleKind, ...]
    about: str
    when: str

    def used_by(self, config: TrainingConfig) -> bool:
        return bool(getattr(config, self.when))


@dataclass(frozen=True)
class Preview:
    """What the launch form shows of the data before anything runs.

    `selection`: which rows have z above a threshold. `weights`: how exp(z / beta) weighs them. `fields` maps what the
    preview takes to the config's fields.
    """

    kind: PreviewKind
    fields: Mapping[str, str]


@dataclass(frozen=True)
class MethodSpec:
    """A method as forms, recipes, reports, estimates and the documentation see it."""

    name: str
    title: str
    about: str
    """What it is for, in one sentence."""
    source: str
    """Paper and equation."""
    config: type[TrainingConfig]
    training: str
    """`package.module:Class` of the worker's half, imported only where it runs: the API has no torch."""
    data: tuple[SampleKind, ...]
    outputs: tuple[ModelRole, ...]
    """Roles of the models that come out: that of the trained one, then those of `also_trains`."""
    label: str = ""
    """Its name in reports and sentences; the title by default."""
    use: str = ""
    """What the page of a dataset that it can learn from offers; "Train LABEL on it" by default."""
    starts_from: frozenset[str] = POLICIES
    frozen: tuple[Frozen, ...] = ()
    also_trains: tuple[Trained, ...] = ()
    further_data: tuple[FurtherData, ...] = ()
    """Datasets of prompts with a response each, of which a source gets the training rows as examples."""
    sequences: int = 1
    """Sequences that a row becomes: 2 for a pair."""
    splits_pairs: bool = False
    """Each side of a pair is a row of its own."""
    leaves_out: LeftOut | None = None
    needs: tuple[Need, ...] = ()
    reads: Reads = "labels"
    learns_from_rewards: bool = False
    condition: str | None = None
    """The config's field with the default condition, where a policy that it trained takes one."""
    baseline: bool = False
    """The default baseline of reports."""
    recommended: bool = False
    """What to begin with among the methods that learn from the same data."""
    changeable: tuple[str, ...] = ("lr",)
    """Numbers of the config that may change while a run trains; the worker's half takes them over by `change`."""
    form: tuple[str, ...] = ()
    """Fields that its form shows first, in addition to those of every method's form."""
    preview: Preview | None = None
    first_metrics: tuple[str, ...] = FIRST_METRICS
    """Names of the curves that its runs show first, in this order; those that a run lacks are left out."""
    result_version: int = 1
    """Raised with every change of what an equal run makes, so that no former result is taken for it."""
    tuning: TuningName | None = None
    """How OpenAI's fine-tuning API calls it, where jobs of that type are its runs."""
    place: int = 1000
    """Its position in lists; then by name."""
    package: str | None = field(default=None, compare=False)
    """The distribution that it came with; None for one of the platform's own."""
    version: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Raises `BadMethod`."""
        if not _NAME.fullmatch(self.name):
            raise BadMethod(f"{self.name!r} is not a valid method name: use lower-case letters, digits and underscores")
        if not (isinstance(self.config, type) and issubclass(self.config, TrainingConfig)):
            raise BadMethod(f"the config of {self.name} is not a subclass of TrainingConfig")
        if get_args(self.config.model_fields["method"].annotation) != (self.name,):
            raise BadMethod(f'the config of {self.name} needs the field `method: Literal["{self.name}"]`')
        if not _PATH.fullmatch(self.training):
            raise BadMethod(
                f"{self.training!r}, the worker's half of {self.name}, is not of the form `package.module:Class`"
            )
        self._check_words("kind of dataset", self.data, get_args(SampleKind))
        self._check_words("role of a model", self.outputs, get_args(ModelRole))
        self._check_words("role of a model", self.starts_from, get_args(ModelRole))
        self._check_words("way to read", (self.reads,), get_args(Reads))
        self._check_words("pairs to leave out", (self.leaves_out or "equal_sides",), get_args(LeftOut))
        self._check_words("need of its rows", self.needs or get_args(Need), get_args(Need))
        self._check_frozen()
        if self.sequences < 1:
            raise BadMethod(f"a row of {self.name} becomes {self.sequences} sequences; it must be 1 or more")
        self._check_fields()
        object.__setattr__(self, "label", self.label or self.title)
        object.__setattr__(self, "use", self.use or f"Train {self.label} on it")

    def _check_words(self, what: str, given: Any, known: tuple[str, ...]) -> None:
        unknown = sorted(set(given) - set(known))
        if unknown or not given:
            fault = f"unknown {what} {unknown[0]!r}" if unknown else f"it names no {what}"
            raise BadMethod(f"{self.name}: {fault}; known: {', '.join(known)}")

    def _check_frozen(self) -> None:
        further = tuple(trained.role for trained in self.also_trains)
        if self.outputs[1:] != further or len(set(self.outputs)) < len(self.outputs):
            raise BadMethod(
                f"{self.name} makes {', '.join(self.outputs)}: name each role once, and those of also_trains"
            )
        taken = {"model", "data", *further}
        for data in self.further_data:
            if data.name in taken or not _NAME.fullmatch(data.name) or data.name in self.config.model_fields:
                raise BadMethod(
                    f"{data.name!r} is not a valid name for a further dataset of {self.name}, or is already taken"
                )
            taken.add(data.name)
            self._check_words("kind of dataset", data.kinds, get_args(SampleKind))
        for model in self.frozen:
            if model.name in taken:
                raise BadMethod(f"a frozen model of {self.name} is called {model.name}, the name of another input")
            if not _NAME.fullmatch(model.name) or model.name in self.config.model_fields:
                raise BadMethod(
                    f"{model.name!r} is not a valid name for a frozen model of {self.name}, or is one of its fields"
                )
            taken.add(model.name)
            self._check_words("use of a frozen model", model.uses, get_args(Use))
            self._check_words("way to read", (model.reads,), get_args(Reads))
            if "log_probs" in model.uses and (model.reads, self.reads) != ("labels", "labels"):
                raise BadMethod(f"{self.name}: only what reads labels has log-probs; {model.name} cannot give them")

        for other in self.also_trains:
            if other.like not in (None, *(model.name for model in self.frozen)):
                raise BadMethod(
                    f"the {other.role} of {self.name} starts from {other.like}, which is not a frozen model"
                )

    def _check_fields(self) -> None:
        if self.preview is not None:
            if self.preview.kind not in PREVIEWS:
                raise BadMethod(f"{self.name}: unknown preview {self.preview.kind!r}; known: {', '.join(PREVIEWS)}")
            needed, known = PREVIEWS[self.preview.kind]
            if not needed <= set(self.preview.fields) <= known:
                raise BadMethod(f"{self.name}: the preview {self.preview.kind} takes {', '.join(sorted(known))}")
        named = [*self.form, *self.changeable, *(self.preview.fields.values() if self.preview else ())]
        named += [self.condition] if self.condition else []
        named += [model.when for model in self.frozen if model.when is not None]
        named += [data.when for data in self.further_data]
        named += [*self.tuning.fields.values(), *self.tuning.factors.values()] if self.tuning else []
        for name in named:
            if name not in self.config.model_fields:
                raise BadMethod(f"the config of {self.name} has no field `{name}`, which its description names")

    @property
    def role(self) -> ModelRole:
        """The role of the trained model."""
        return self.outputs[0]

    @property
    def halves(self) -> bool:
        """Whether it can learn from one half of its data, so that two models of it share no prompt."""
        return HALF in self.config.model_fields

    @property
    def online(self) -> bool:
        """Whether it learns from answers that it samples from the weights in training."""
        return issubclass(self.config, OnlineConfig)

    def kept(self, config: TrainingConfig, given: Container[str]) -> int:
        """How many frozen models stay in the memory of devices that train, of a run with the inputs `given`."""
        return len(self.kept_names(config, given))

    def kept_names(self, config: TrainingConfig, given: Container[str]) -> list[str]:
        """The names of these."""
        return [model.name for model in self._held(config, given) if not _placed(model, config)]

    def placement_fault(self, config: TrainingConfig, given: Container[str]) -> str | None:
        """Which role has devices of its own that a run with the inputs `given` has no model for."""
        if not isinstance(config, OnlineConfig):
            return None
        held = {model.role for model in self._held(config, given)}
        unused: list[Role] = [role for role in MODEL_ROLES if config.placement.copies(role) and role not in held]
        if not unused:
            return None
        return (
            f"{listed(unused)} would get dedicated devices but no model to hold: {self.name} with these "
            f"inputs and fields does not need one. Leave placement.{unused[0]} at 0"
        )

    def instead_of(self, name: str) -> str:
        """What can be done with a model of another tokenizer than its input `name` needs; empty where nothing can."""
        return next((model.instead for model in self.frozen if model.name == name), "")

    def given_tokens(self, config: TrainingConfig) -> list[str]:
        """Inputs, where they are given, that read the very token ids of the model to train."""
        frozen = [model.name for model in self.frozen if model.used_by(config) and not model.by_text]
        return [*frozen, *(trained.role for trained in self.also_trains)]

    def _held(self, config: TrainingConfig, given: Container[str]) -> list[Frozen]:
        """Frozen models that are in memory during training, wherever that is."""
        used = [model for model in self.frozen if model.stays and model.used_by(config)]
        return [model for model in used if model.required or model.reads == "labels" or model.name in given]

    @property
    def slots(self) -> dict[str, Slot]:
        frozen = {model.name: models(*model.roles, required=model.required) for model in self.frozen}
        trained = {
            trained.role: models(*trained.starts_from, required=trained.required) for trained in self.also_trains
        }
        further = {data.name: datasets(*data.kinds, required=False) for data in self.further_data}
        return {"model": models(*self.starts_from), "data": datasets(*self.data), **further, **trained, **frozen}


def _placed(model: Frozen, config: TrainingConfig) -> bool:
    return isinstance(config, OnlineConfig) and config.placement.copies(model.role) > 0
