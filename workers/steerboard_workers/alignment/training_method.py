"""The worker's half of a training method: which rows it learns from, what they become, and its objective."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import BadRow, EmptySelection
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.batch_source import BatchSource, ListSource
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.missing_rewards import rows_without_reward
from steerboard_workers.alignment.objectives import LanguageObjective, Objective
from steerboard_workers.alignment.rendering.render import RenderedGroup, Renderer, answer_room
from steerboard_workers.alignment.rollouts import SourceContext

Row = dict[str, Any]
C = TypeVar("C", bound=TrainingConfig)
Online = TypeVar("Online", bound=OnlineConfig)


class Source(Protocol):
    """The dataset that the rows are of. `normaliser` turns the raw rewards of labelled rows into z."""

    @property
    def name(self) -> str: ...
    @property
    def normaliser(self) -> Normaliser | None: ...


@dataclass
class Selection:
    """The rows to learn from, of both splits, and notes on them.

    `summary` goes into the run's summary, `info` into the model's steerboard.json, `metrics` are emitted with the
    first step, `notes` and `warnings` are logged.
    """

    rows: list[Row]
    summary: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class TrainingMethod(Generic[C]):
    """One run's method. By default: all rows, one response each, equal weights, the likelihood of the response.

    `fields` are what every row must have, `sides` those of them that are responses to its prompt; without sides,
    examples are prompts that are cut so that an answer of the config's `max_new_tokens` fits.
    """

    fields: ClassVar[tuple[str, ...]] = ("prompt", "response")
    sides: ClassVar[tuple[str, ...]] = ("response",)
    condition_format: ConditionFormat | None = None
    """How conditions are written, once rows were selected; None where answers are learned under none."""

    def __init__(self, config: C) -> None:
        self.config = config

    def change(self, config: C) -> None:
        """The config from the next step on: only fields differ that the spec names as `changeable`. The training loop
        itself follows `lr` and `rates`."""
        self.config = config

    def select(self, rows: list[Row], source: Source) -> Selection:
        """Called once, before anything is tokenised. A row has `row`, `split` and `half` besides its kind's fields."""
        return Selection(rows)

    def asked(self, row: Row) -> Condition | None:
        """The condition that a row's answer is learned under, of a method with a `condition_format`."""
        return None

    def condition(self, row: Row) -> str | None:
        """The text after the prompt's last marker, such as a score; the empty one where it is dropped."""
        asked = self.asked(row)
        if asked is None or self.condition_format is None:
            return None
        return "" if self._drops(row) else self.condition_format.text(asked)

    def _drops(self, row: Row) -> bool:
        """Depends on seed and row number alone, so that shards and attempts drop the same ones."""
        share = getattr(self.config, "drop_score", 0.0)
        if not share or row.get("split") == "held_out":
            return False
        drawn = hashlib.blake2b(f"drop_score {self.config.seed} {row.get('row')}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "big") < share * 2**64

    def recondition(self, renderer: Renderer, rows: list[Row], conditions: Sequence[Condition]) -> list[Example | None]:
        """The examples of rows whose answers are asked for by `conditions`, one a row, instead of their own. None: it
        does not fit. Only with a `condition_format`, whose resolved conditions these are."""
        assert self.condition_format is not None
        groups = self._rendered(renderer, rows, [self.condition_format.text(condition) for condition in conditions])
        return [
            None if group is None else self.example(int(row.get("row", place)), row, group)
            for place, (row, group) in enumerate(zip(rows, groups, strict=True))
        ]

    def render(self, renderer: Renderer, rows: list[Row]) -> list[RenderedGroup | None]:
        """Prompts and responses of some rows as tokens. None: it does not fit, and is left out and counted."""
        return self._rendered(renderer, rows, [self.condition(row) for row in rows])

    def _rendered(
        self, renderer: Renderer, rows: list[Row], conditions: Sequence[str | None]
    ) -> list[RenderedGroup | None]:
        prompts = [row["prompt"] for row in rows]
        given = conditions if any(condition is not None for condition in conditions) else None
        if self.condition_format is not None:
            renderer = renderer.writing(self.condition_format)
        if self.sides:
            return renderer.render_groups(prompts, [[row[side] for side in self.sides] for row in rows], given)
        room = answer_room(renderer.max_length, getattr(self.config, "max_new_tokens", None))
        return renderer.render_prompts(prompts, given, room)

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        """Returns None where nothing is left to learn of the row, which counts as dropped."""
        return Example.of(number, group)

    def relate(self, train: list[Example], held_out: list[Example], max_length: int) -> None:
        """Give examples, in these lists, what they need of each other, such as companions of at most `max_length`
        tokens, or leave some out, which then count as dropped. Called once, with all that are left."""

    def source(self, context: SourceContext) -> BatchSource:
        """The source of the global batches: by default the rows, in random order."""
        return ListSource(context.train, context.held_out, self.config)

    def objective(self) -> Objective:
        return LanguageObjective()

    @property
    def temperature(self) -> float:
        """Log-probs in training, those of frozen models too, are of softmax(logits / temperature). A policy gradient
        needs the temperature that was sampled at."""
        return 1.0

    @property
    def drops_out(self) -> bool:
        """Whether the dropout of the model's own config and of LoRA is at work in training. Not where a loss compares
        log-probs with those of a frozen model, which are read without it: the differences would be noise, and the first
        step would not find the policy at its reference. Nor with a policy gradient, which compares those of two steps.
        """
        return all(model.reads == "ends" for model in needed_method(self.config.method).frozen)

    @property
    def needs_entropy(self) -> bool:
        """Whether the objective reads the entropy of each token's distribution, too."""
        return False

    @property
    def rates(self) -> Mapping[str, float]:
        """The learning rate of each model of `also_trains`, by role, as a multiple of the config's; 1 by default."""
        return {}

    @property
    def shares_prompt(self) -> bool:
        """Whether the responses of a row are computed behind one copy of its prompt, where the model allows it."""
        return False

    def summary(self, evaluated: dict[str, float], held_out: int) -> dict[str, Any]:
        """Figures of the finished run in addition to those of every method; `held_out` counts the rows evaluated on."""
        return {}

    def nothing_left(self) -> str:
        """What to do where no training row is left."""
        return "Rows of held-out prompts are not learned from: give prompts that the project does not hold out."


class RewardedMethod(TrainingMethod[C]):
    """Learns from labelled rows, whose `z` is filled in: the reward less the dataset's mean, over its sd.

    Selecting raises `BadInput` (`rows_without_reward`) for rows that have attributes only.
    """

    fields: ClassVar[tuple[str, ...]] = ("prompt", "response", "reward")

    def select(self, rows: list[Row], source: Source) -> Selection:
        if not rows:
            raise EmptySelection(f"dataset {source.name} has no rows", hint="Label some rows first.")
        without = [int(row.get("row", place)) for place, row in enumerate(rows) if "reward" not in row]
        if without:
            raise rows_without_reward(source.name, without)
        rewards = [_finite(row, source) for row in rows]
        normaliser = source.normaliser or Normaliser.fit(rewards, source.name)
        for row, reward in zip(rows, rewards, strict=True):
            row["z"] = normaliser.z(reward)
        selection = self.select_rewarded(rows, rewards, normaliser)
        selection.info = {"normaliser": normaliser, **selection.info}
        return selection

    def select_rewarded(self, rows: list[Row], rewards: Sequence[float], normaliser: Normaliser) -> Selection:
        return Selection(rows)


class OnlineMethod(TrainingMethod[Online]):
    """Learns from answers that are sampled from its own weights in training: needs prompts only, and a source."""

    fields: ClassVar[tuple[str, ...]] = ("prompt",)
    sides: ClassVar[tuple[str, ...]] = ()

    def source(self, context: SourceContext) -> BatchSource:
        raise NotImplementedError


def _finite(row: Row, source: Source) -> float:
    reward = float(row["reward"])
    if not np.isfinite(reward):
        raise BadRow(f"dataset {source.name}: the reward of row {row.get('row')} is not a finite number")
    return reward
