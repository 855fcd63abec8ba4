"""Has the model in training answer a few prompts before the first step and at each evaluation, greedily.

Answers are emitted as they are made, so that they are read during the run, and travel with checkpoints: an
attempt that resumes emits those of the steps before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.stage.events import Probed
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.probing import MOST_CHARACTERS, MOST_STEPS, ProbeAnswer, ProbeConfig, ProbePrompt
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rollouts import LivePolicy
from steerboard_workers.stages.distributed.strategies import Module, Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.sampling.live_policy import SampledPolicy
from steerboard_workers.stages.training.setup import Setup

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class _ProbeInputs:
    """The prompts as tokens, with what they ask for."""

    condition: Condition | None
    prompts: list[Example]


class Prober:
    """`before`: as the start model is asked; `asked`: as what comes out of training will be."""

    def __init__(
        self,
        stage: Stage,
        config: TrainingConfig,
        policy: LivePolicy,
        prompts: Sequence[ProbePrompt],
        room: int,
        before: _ProbeInputs,
        asked: _ProbeInputs,
    ) -> None:
        self._stage = stage
        self._policy = policy
        self._prompts = [_shown(prompt) for prompt in prompts]
        self._room = room
        self._before = before
        self._asked = asked
        self._planned: frozenset[int] = frozenset()
        self._steps: dict[int, Probed] = {}

    def start(self, total: int, every: int) -> None:
        """Called before the first of `total` steps, with evaluations `every` so many, and before a checkpoint is read:
        the start model answers."""
        self._planned = frozenset(planned(total, every))
        self._answer(0, self._before)

    def look(self, step: int) -> None:
        if step in self._planned:
            self._answer(step, self._asked)

    def _answer(self, step: int, asked: _ProbeInputs) -> None:
        with self._stage.phases.measure("evaluate"):
            drawn = self._policy.sample(step, asked.prompts, temperature=0.0, max_new_tokens=self._room)
        answers = [
            ProbeAnswer(text=rollout.text, tokens=len(rollout.ids), finished=rollout.finished) for (rollout,) in drawn
        ]
        probed = Probed(step=step, condition=asked.condition, prompts=self._prompts, answers=answers)
        self._steps[step] = probed
        self._stage.emit(probed)

    def state(self) -> dict[str, Any]:
        return {"steps": [probed.model_dump(mode="json") for probed in self._steps.values()]}

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Takes nothing of other prompts, as of a run that resumes with others."""
        for probed in (Probed.model_validate(step) for step in (state or {"steps": []})["steps"]):
            if probed.step > 0 and probed.prompts == self._prompts:
                self._steps[probed.step] = probed
                self._stage.emit(probed)


def prober_of(
    stage: Stage, config: TrainingConfig, start: Setup, module: Module, sharing: Strategy, data: TrainingData
) -> Prober:
    """Raises `BadInput` when the policy cannot be asked for the probe's score, or answers do not fit the window."""
    probe = config.probe
    assert probe is not None
    policy = SampledPolicy(module, sharing, start.renderer, config, stage.phases)
    # Prompts keep half of the window.
    room = min(probe.max_new_tokens, start.renderer.max_length // 2)
    prompts = [*_held_out(stage, probe.held_out, config.seed), *_given(probe)]
    if not prompts:
        stage.log("no row is held out: there is no prompt to answer at evaluations", "warning")
    rendered = [
        _asked(start.renderer, form, form.resolve(score) if form else None, prompts, room)
        for form, score in ((start.info.condition, None), (data.info.get("condition"), probe.score))
    ]
    return Prober(stage, config, policy, prompts, room, *rendered)


def planned(total: int, every: int) -> list[int]:
    """The evaluated steps at which prompts are answered: all, or evenly some of them with the last one."""
    steps = sorted({*range(every, total + 1, every), total}) if every else [total]
    stride = math.ceil(len(steps) / (MOST_STEPS - 1))
    return steps[::-stride][::-1]


def _asked(
    renderer: Renderer,
    form: ConditionFormat | None,
    condition: Condition | None,
    prompts: Sequence[ProbePrompt],
    room: int,
) -> _ProbeInputs:
    text = form.text(condition) if form is not None and condition is not None else None
    ids = renderer.writing(form).prompts_ids([prompt.messages for prompt in prompts], [text] * len(prompts), room)
    # A prompt's place replaces its row, which those of the config have none of.
    examples = [Example(row=at, prompt=np.array(prompt, dtype=np.int32), responses=()) for at, prompt in enumerate(ids)]
    return _ProbeInputs(condition, examples)


def _held_out(stage: Stage, limit: int, seed: int) -> list[ProbePrompt]:
    """Different prompts of held-out rows, `limit` at most, in their order."""
    distinct: dict[str, ProbePrompt] = {}
    if limit:
        for place, row in enumerate(stage.rows("data")):
            if row.get("split") == "held_out":
                prompt = ProbePrompt(row=int(row.get("row", place)), messages=row["prompt"])
                distinct.setdefault(str(prompt.messages), prompt)
    prompts = list(distinct.values())
    if len(prompts) <= limit:
        return prompts
    generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, 2**61]))
    return [prompts[place] for place in sorted(generator.choice(len(prompts), limit, replace=False))]


def _given(probe: ProbeConfig) -> list[ProbePrompt]:
    return [ProbePrompt(row=None, messages=[{"role": "user", "content": text}]) for text in probe.prompts]


def _shown(prompt: ProbePrompt) -> ProbePrompt:
    """Its last characters."""
    left, turns = MOST_CHARACTERS, []
    for turn in reversed(prompt.messages):
        text = turn["content"]
        turns.append({**turn, "content": text if len(text) <= left else "\u2026" + text[len(text) - left :]})
        left -= min(left, len(text))
        if left == 0:
            break
    return prompt.model_copy(update={"messages": turns[::-1]})
