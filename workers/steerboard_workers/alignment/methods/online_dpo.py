"""Online DPO: Alg. 1 of arXiv 2402.04792."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods.online_dpo import OnlineDpoConfig
from steerboard_contracts.pairs import REFERENCE, BetaPairConfig
from steerboard_workers.alignment.batches.batch_source import BadSource, Batch, BatchSource
from steerboard_workers.alignment.choice import choose
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.online.answers import length_metrics
from steerboard_workers.alignment.online.mismatch import sampler_metrics
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.sampling import RewardedSource, Sampled
from steerboard_workers.alignment.pairs import LogisticPairs, PairObjective
from steerboard_workers.alignment.rendering.render import RenderedGroup
from steerboard_workers.alignment.rollouts import Rollout, SourceContext
from steerboard_workers.alignment.training_method import OnlineMethod, Row


class OnlineDpo(OnlineMethod[OnlineDpoConfig]):
    """The loss of DPO on pairs of the policy's own answers. One sampling is one optimiser step."""

    def __init__(self, config: OnlineDpoConfig) -> None:
        super().__init__(config)
        self.texts = RowTexts()
        self._pairs = LogisticPairs(_of_pairs(config))

    def change(self, config: OnlineDpoConfig) -> None:
        super().change(config)
        self._pairs.change(_of_pairs(config))

    @property
    def drops_out(self) -> bool:
        return False

    @property
    def shares_prompt(self) -> bool:
        return self.config.share_prompt

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        self.texts.add(number, row)
        return super().example(number, row, group)

    def source(self, context: SourceContext) -> BatchSource:
        return SampledPairs(context, self.config, self.texts)

    def objective(self) -> Objective:
        return PairObjective(self._pairs)


def _of_pairs(config: OnlineDpoConfig) -> BetaPairConfig:
    return BetaPairConfig(
        method=config.method, beta=config.beta, reduction=config.reduction, sft_weight=config.sft_weight
    )


class SampledPairs(RewardedSource):
    """Each prompt's best and worst answer by reward, the first ones among equals; those that tie are left out and
    counted. Where none is left, the step is skipped."""

    responses = 2
    config: OnlineDpoConfig

    def batch(self, step: int) -> Batch:
        self.step = step
        sampled, metrics = self.collected()
        rewards, _ = self.shaped(sampled)
        pairs, answers, counted = self._pairs(sampled, rewards.reshape(len(sampled.prompts), -1))
        counted |= length_metrics(sampled.rollouts, [np.zeros(1)] * len(sampled.rollouts))
        if counted["dropped_single"] == len(sampled.prompts):
            raise BadSource(
                f"no answer of step {step + 1} can be learned: none has a reward to compare",
                hint="Sample more answers to each prompt, or more prompts in a step.",
            )
        if not pairs:
            return Batch([], metrics | counted, skipped=True)
        context = self.context
        with context.phases.measure("reference") as phase:
            log_probs = context.passes.per_sequence(pairs, REFERENCE.name)
            trained = context.passes.per_label(pairs, temperature=self.config.temperature)
            phase.tokens += 2 * sum(pair.tokens for pair in pairs)
        of_answers = [values for pair in trained for values in pair]
        counted |= sampler_metrics(answers, of_answers, self.config.max_sampler_difference)
        learned = [
            replace(pair, frozen_log_probs={REFERENCE.name: values})
            for pair, values in zip(pairs, log_probs, strict=True)
        ]
        return Batch(learned, metrics | counted)

    def _pairs(
        self, sampled: Sampled, rewards: NDArray[np.float64]
    ) -> tuple[list[Example], list[Rollout], dict[str, float]]:
        """(pairs, their answers, best and worst by turns, counts). rewards (G, n), NaN of answers without one."""
        n, dropped = rewards.shape[1], Counter[str]()
        pairs: list[Example] = []
        paired: list[Rollout] = []
        gaps: list[float] = []
        for place, prompt in enumerate(sampled.prompts):
            known = np.flatnonzero(~np.isnan(rewards[place])).tolist()
            answers = [sampled.rollouts[place * n + index] for index in known]
            if len(answers) < 2:
                dropped["single"] += 1
                continue
            scores = rewards[place][known].tolist()
            choice = choose(scores, [answer.text for answer in answers], self.config.min_margin)
            if choice.dropped is not None:
                dropped[choice.dropped] += 1
                continue
            gaps.append(scores[choice.best] - scores[choice.worst])
            sides = answers[choice.best], answers[choice.worst]
            pairs.append(replace(prompt, responses=(sides[0].ids, sides[1].ids)))
            paired += sides
        counted = {f"dropped_{reason}": float(dropped[reason]) for reason in ("single", "equal_texts", "tied")}
        equal = (dropped["equal_texts"] + dropped["tied"]) / len(sampled.prompts)
        counted |= {"pairs": float(len(pairs)), "equal_groups": equal}
        return pairs, paired, counted | ({"reward_gap": float(np.mean(gaps))} if gaps else {})

    def _filled(self, prompt: Example, room: int) -> Example:
        zeros = np.zeros(self.responses, dtype=np.float32)
        return replace(super()._filled(prompt, room), frozen_log_probs={REFERENCE.name: zeros})
