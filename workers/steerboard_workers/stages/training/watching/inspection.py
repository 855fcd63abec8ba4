"""Keeps, at each evaluation of a run that learns from pairs or from answers with a thumb, what the model makes of some
of them: rewards and the log-ratio of each token. A fixed sample of what is held out and of what the run's steps draw.

The newest step is emitted, so that it is read during the run. What is kept travels with checkpoints, so that a
run that resumes has the steps before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods import needed_method
from steerboard_contracts.samples import Split
from steerboard_contracts.stage.events import Inspected
from steerboard_contracts.stage.outputs import PairsOutput
from steerboard_contracts.watching.inspected_pairs import (
    INDEX_FILE,
    MOST_STEPS,
    MOST_TOKENS,
    InspectedPair,
    LivePair,
    PairsIndex,
    StepPairs,
    step_file,
)
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.pairs import GivesRewards, Responses
from steerboard_workers.alignment.token_texts import token_texts
from steerboard_workers.alignment.training_method import TrainingMethod
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.frozen.models import FrozenModels
from steerboard_workers.stages.training.passes import ForwardPasses

Labels = list[list[NDArray[np.float32]]]
FOLDER = "pairs"


class PairInspector:
    """Every process calls `look`, because its passes are shared; the main one keeps what is found."""

    def __init__(
        self,
        stage: Stage,
        method: TrainingMethod[Any],
        pairs: Sequence[tuple[Split, Example]],
        index: PairsIndex,
        passes: ForwardPasses,
        before: Labels | None,
    ) -> None:
        self._stage = stage
        self._method = method
        self._examples = [example for _, example in pairs]
        self._index = index
        self._passes = passes
        self._before = before
        self._steps: dict[int, StepPairs] = {}

    def look(self, step: int) -> None:
        """What the model makes of the pairs after `step` optimiser steps."""
        self._steps[step] = self._rewarded(step) if self._before is None else self._by_token(step, self._before)
        self._tell(step)
        if len(self._steps) > MOST_STEPS:
            # The newest stays; of the others every second goes.
            for old in sorted(self._steps)[-2::-2]:
                del self._steps[old]

    def _rewarded(self, step: int) -> StepPairs:
        rewards = self._passes.per_sequence(self._examples)
        return self._step_pairs(step, rewards, [[[]] * len(example.responses) for example in self._examples])

    def _by_token(self, step: int, before: Labels) -> StepPairs:
        assert isinstance(self._method, GivesRewards)
        now = self._passes.per_label(self._examples)
        rewards = self._method.rewards(Responses.of_labels(self._examples, now)).numpy()
        counts = [len(example.responses) for example in self._examples]
        ratios = [
            [_rounded((new - old)[-len(response) :]) for new, old, response in zip(*sides, strict=True)]
            for sides in zip(now, before, (example.responses for example in self._examples), strict=True)
        ]
        return self._step_pairs(step, np.split(rewards, np.cumsum(counts)[:-1]), ratios)

    def _step_pairs(self, step: int, rewards: Sequence[NDArray[Any]], ratios: Sequence[list[list[float]]]) -> StepPairs:
        """`rewards`, (responses,), and `ratios` of each example."""
        columns: dict[str, list[Any]] = {}
        for side, name in enumerate(("chosen", "rejected")):
            places = [_sides(example)[side] for example in self._examples]
            columns[f"{name}_rewards"] = [
                None if at is None else float(values[at]) for values, at in zip(rewards, places, strict=True)
            ]
            columns[f"{name}_log_ratios"] = [
                [] if at is None else values[at] for values, at in zip(ratios, places, strict=True)
            ]
        return StepPairs(step=step, **columns)

    def _tell(self, step: int) -> None:
        """Reports every pair by itself: a line of all of them would be too long."""
        pairs = self._steps[step]
        for place, pair in enumerate(self._index.pairs):
            live = LivePair(
                compared_with=self._index.compared_with,
                pair=pair,
                chosen_reward=pairs.chosen_rewards[place],
                rejected_reward=pairs.rejected_rewards[place],
                chosen_log_ratios=pairs.chosen_log_ratios[place],
                rejected_log_ratios=pairs.rejected_log_ratios[place],
            )
            self._stage.emit(Inspected(step=step, place=place, found=live))

    # -- across attempts ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint's record."""
        rows = [pair.row for pair in self._index.pairs]
        return {"rows": rows, "steps": [pairs.model_dump(mode="json") for pairs in self._steps.values()]}

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Takes nothing of other pairs, as of a run that resumes with another number of them."""
        if state is not None and state["rows"] == [pair.row for pair in self._index.pairs]:
            self._steps = {pairs["step"]: StepPairs.model_validate(pairs) for pairs in state["steps"]}
            if self._steps:
                self._tell(max(self._steps))

    def save(self, stage: Stage) -> PairsOutput | None:
        """A folder among the run's outputs; None where no step was evaluated."""
        steps = sorted(self._steps)
        if not steps:
            return None
        index = self._index.model_copy(update={"steps": steps})
        with stage.output_folder(FOLDER) as folder:
            (folder / INDEX_FILE).write_text(index.model_dump_json())
            for step in steps:
                (folder / step_file(step)).write_text(self._steps[step].model_dump_json())
        return PairsOutput(path=stage.output_path(FOLDER), pairs=len(index.pairs), steps=steps)


def inspector_of(
    stage: Stage,
    method: TrainingMethod[Any],
    tokenizer: Any,
    data: TrainingData,
    source: BatchSource,
    passes: ForwardPasses,
    frozen: FrozenModels,
) -> PairInspector | None:
    """Returns None for methods that neither compare the two answers of a pair nor learn thumbs, and where none are to
    be inspected. Called by every process before the first step, with the weights that training starts from."""
    config = method.config
    limit = getattr(config, "inspect_pairs", 0)
    by_token = isinstance(method, GivesRewards)
    compares = by_token or (len(method.sides) == 2 and needed_method(config.method).reads == "ends")
    drawn = source.drawn()
    train = data.train if drawn is None else [data.train[place] for place in sorted(drawn)]
    pairs = [*_sample("held_out", data.held_out, limit, config.seed), *_sample("train", train, limit, config.seed)]
    if not compares or not pairs:
        return None
    examples = [example for _, example in pairs]
    name, before = frozen.per_label(examples) if by_token else (None, None)
    index = PairsIndex.model_validate(
        {
            "method": config.method,
            "compared_with": name,
            "pairs": [_described(split, example, tokenizer) for split, example in pairs],
            "steps": [],
        }
    )
    what = "pairs" if len(method.sides) == 2 else "answers"
    stage.log(f"{len(pairs)} {what} are inspected at each evaluation")
    return PairInspector(stage, method, pairs, index, passes, before)


def _sample(split: Split, examples: Sequence[Example], limit: int, seed: int) -> list[tuple[Split, Example]]:
    """A sample of `limit` at most, in their order."""
    places: Sequence[int] = range(len(examples))
    if len(examples) > limit:
        generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, 2**62]))
        places = sorted(generator.choice(len(examples), limit, replace=False).tolist())
    return [(split, examples[place]) for place in places]


def _described(split: Split, example: Example, tokenizer: Any) -> InspectedPair:
    texts = [token_texts(tokenizer, ids[:MOST_TOKENS]) for ids in example.responses]
    chosen, rejected = (None if at is None else texts[at] for at in _sides(example))
    return InspectedPair(row=example.row, split=split, chosen=chosen, rejected=rejected)


def _sides(example: Example) -> tuple[int | None, int | None]:
    """Which of its responses is chosen, and which rejected. A single one is undesirable if its weight is negative."""
    if len(example.responses) == 2:
        return 0, 1
    return (0, None) if example.weight > 0 else (None, 0)


def _rounded(ratios: NDArray[Any]) -> list[float]:
    return [round(float(ratio), 4) for ratio in ratios[:MOST_TOKENS]]
