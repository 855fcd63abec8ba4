"""Distillation on the student's own answers: Algorithm 1 of arXiv 2306.13649, with a reward as in its Eq. 5.

Departures: a step takes the share `on_policy` of its prompts, where the paper draws for each step whether it is on the
policy; rewards are compared with the mean of the other answers to their prompt (arXiv 2402.14740), where the paper has
no baseline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.distillation import TEACHER, DistillationConfig
from steerboard_contracts.specs.method import Reads
from steerboard_workers.alignment.batches.batch_source import Batch, BatchSource
from steerboard_workers.alignment.batches.batching import MicroBatch
from steerboard_workers.alignment.divergence import Compared, Comparison
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective, Passes
from steerboard_workers.alignment.online.answers import length_metrics
from steerboard_workers.alignment.online.groups import Sampling, answer_group
from steerboard_workers.alignment.online.mismatch import distance_from_sampler
from steerboard_workers.alignment.online.objective import ADVANTAGES, SAMPLED
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.sampling import RewardedSource, Sampled
from steerboard_workers.alignment.policy_gradient import losses
from steerboard_workers.alignment.policy_gradient.advantages import leave_one_out
from steerboard_workers.alignment.rendering.render import RenderedGroup, Renderer
from steerboard_workers.alignment.rollouts import SourceContext
from steerboard_workers.alignment.training_method import OnlineMethod, Row, Selection, Source
from steerboard_workers.phases import Phases

# A name of `Example.token_values`: the teacher's log-probs, where nothing else of its distribution is read.
TEACHERS = "teacher_log_probs"
# A field of a row while it becomes an example: its own answer.
ANSWERED = "_answered"
ROUNDING = 1e-9


class Distillation(OnlineMethod[DistillationConfig]):
    def __init__(self, config: DistillationConfig) -> None:
        super().__init__(config)
        self.texts = RowTexts()
        self.given: dict[int, Example] = {}
        self._phases: Phases | None = None

    @property
    def temperature(self) -> float:
        return self.config.temperature

    @property
    def drops_out(self) -> bool:
        return False

    @property
    def shares_prompt(self) -> bool:
        return self.config.answers > 1

    def select(self, rows: list[Row], source: Source) -> Selection:
        without = [int(row.get("row", place)) for place, row in enumerate(rows) if "response" not in row]
        if self.config.on_policy < 1 and without:
            raise BadInput(
                f"row {without[0]} of dataset {source.name} has no answer, and on_policy {self.config.on_policy:g} "
                "learns those of the dataset",
                code="wrong_dataset_kind",
                hint="Give instructions or labelled rows, or set on_policy to 1.",
            )
        return Selection(rows)

    def render(self, renderer: Renderer, rows: list[Row]) -> list[RenderedGroup | None]:
        """Prompts as they are answered; a row's own answer is kept with it, where it may be learned."""
        prompts = super().render(renderer, rows)
        if self.config.on_policy < 1:
            groups = renderer.render_groups([row["prompt"] for row in rows], [[row["response"]] for row in rows])
            for row, group in zip(rows, groups, strict=True):
                row[ANSWERED] = group
        return prompts

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example | None:
        self.texts.add(number, row)
        if self.config.on_policy < 1:
            own = row.pop(ANSWERED)
            if own is None:
                return None
            self.given[number] = replace(Example.of(number, own), prompt_supervised=None)
        return super().example(number, row, group)

    def source(self, context: SourceContext) -> BatchSource:
        self._phases = context.phases
        return TaughtAnswers(context, self.config, self.texts, self.given)

    def objective(self) -> Objective:
        """Is made after `source`, in whose phases the teacher's passes count."""
        kind = Distribution if self.config.whole_vocabulary else SampledTokens
        return kind(self.config, self._phases or Phases())


class TaughtAnswers(RewardedSource):
    """A step learns the student's answers to the first prompts of its list, and the dataset's to the others."""

    config: DistillationConfig

    def __init__(
        self, context: SourceContext, config: DistillationConfig, texts: RowTexts, given: Mapping[int, Example]
    ) -> None:
        super().__init__(context, config, texts)
        self._given = given

    def batch(self, step: int) -> Batch:
        self.step = step
        given = [self._given[prompt.row] for prompt in self.prompts(step)[self._own(step) :]]
        examples = [self._valued(example, np.full(example.labels, np.nan)) for example in given]
        if not self._own(step):
            self._drawn += 1
            return Batch(examples)
        sampled, metrics = self.collected()
        lengths = length_metrics(sampled.rollouts, [np.zeros(1)] * len(sampled.rollouts))
        return Batch([*self._learned(sampled, step), *examples], metrics | lengths)

    def held_out(self, step: int) -> Batch:
        """Answers as training samples them, so that their divergence is of what is learned."""
        rollouts, examples = self.held_out_answers(step, self.config.temperature)
        if not rollouts:
            return Batch([])
        metrics = self.held_out_metrics(rollouts, examples)
        sampled = [rollout.log_probs for rollout in rollouts]
        return Batch(self._taught(examples, sampled, [np.zeros(len(one)) for one in sampled]), metrics)

    def rehearsal(self) -> list[Sequence[Example]]:
        """The longest prompts, each with all its answers, as they share it, and the longest answers of the dataset."""
        (longest,) = super().rehearsal()
        answers = self.config.answers
        sampled = [example for example in longest[: math.ceil(len(longest) / answers)] for _ in range(answers)]
        given = sorted(self._given.values(), key=lambda example: -max(example.lengths))[: self.config.batch]
        batches = [[self._valued(example, np.zeros(example.labels)) for example in part] for part in (sampled, given)]
        return [batch for batch in sorted(batches, key=_longest, reverse=True) if batch]

    def _listed(self, number: int) -> list[Example]:
        return super()._listed(number)[: self._own(number)]

    def _own(self, step: int) -> int:
        """How many prompts of a step the student answers: over all steps the share `on_policy`, also in small ones."""
        each = self.config.on_policy * self.config.batch
        due = math.floor(each * (step + 1) + ROUNDING) - math.floor(each * step + ROUNDING)
        return min(due, len(self.prompts(step)))

    def _learned(self, sampled: Sampled, step: int) -> list[Example]:
        rewards = sampled.grouped(self.shaped(sampled)[0])
        known = leave_one_out(rewards) if self.config.alpha < 1 else np.zeros(rewards.shape)
        of_answers = np.nan_to_num(known).reshape(-1)  # an answer without a reward is distilled all the same
        log_probs = [rollout.log_probs for rollout in sampled.rollouts]
        advantages = [np.full(len(one), advantage) for one, advantage in zip(log_probs, of_answers, strict=True)]
        taught = self._taught(sampled.examples, log_probs, advantages)
        keep = self.context.keep_group
        if keep is not None and self.is_kept(step):
            shown = rewards if self.rewards.sources else np.full(rewards.shape, np.nan)
            apart = [
                one.astype(np.float64) - example.token_values[TEACHERS][0]
                for one, example in zip(log_probs, taught, strict=True)
                if TEACHERS in example.token_values
            ]
            tied = np.zeros(len(rewards), dtype=np.bool_)
            sampling = Sampling(sampled.rollouts, sampled.scores.sources, shown, advantages, apart, tied)
            for place, prompt in enumerate(sampled.prompts[: self.config.inspect_groups]):
                keep(step + 1, answer_group(place, prompt, sampling, self.context.renderer.tokenizer))
        return taught

    def _taught(
        self,
        examples: Sequence[Example],
        log_probs: Sequence[NDArray[np.float32]],
        advantages: Sequence[NDArray[np.float64]],
    ) -> list[Example]:
        """Answers with what their sampler and, where the objective reads no more of it, their teacher think of them."""
        valued = [self._valued(*values) for values in zip(examples, log_probs, advantages, strict=True)]
        if self.config.whole_vocabulary:
            return valued
        with self.context.phases.measure("reference") as phase:
            phase.tokens += sum(example.tokens for example in examples)
            teachers = self.context.passes.per_label(examples, TEACHER.name)
        return [
            replace(example, token_values={**example.token_values, TEACHERS: tuple(values)})
            for example, values in zip(valued, teachers, strict=True)
        ]

    def _valued(
        self, example: Example, sampled: NDArray[Any], advantages: NDArray[np.float64] | None = None
    ) -> Example:
        """`sampled`: log-probs of the labels as they were drawn, NaN where they are the dataset's."""
        zeros = np.zeros(example.labels, dtype=np.float32)
        values = {SAMPLED: (sampled.astype(np.float32),)}
        values[ADVANTAGES] = (zeros if advantages is None else advantages.astype(np.float32),)
        if not self.config.whole_vocabulary:
            values[TEACHERS] = (zeros,)
        return replace(example, token_values=values)


def _longest(examples: Sequence[Example]) -> int:
    return max((max(example.lengths) for example in examples), default=0)


class DistillationObjective:
    """alpha D - (1 - alpha) A log pi at each token, reduced over the global batch. Subclasses give D, whose gradient is
    that of the divergence.

    Its figures are of all tokens: `divergence`, `entropy` of the student in nats, and what a subclass adds.
    """

    reads: Reads = "labels"
    measures: tuple[str, ...] = (
        *("loss_sum", "count", "labels", "divergence", "entropy", "on_labels", "on_divergence", "apart", "apart_max"),
        *("teacher", "agrees"),
    )

    def __init__(self, config: DistillationConfig, phases: Phases) -> None:
        self.config = config
        self._phases = phases

    def count(self, examples: Sequence[Example]) -> float:
        return losses.reduced_count([n for e in examples for n in e.label_counts], self.config.reducer)

    def diverges(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The divergence of each token (N,), with gradient; the student's and the teacher's entropy, or estimates of
        them; whether the likeliest token is the same."""
        raise NotImplementedError

    def forward(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        config, log_probs = self.config, output[0]
        of_divergence, entropy, teacher, agrees = self.diverges(output, batch)
        of_tokens = config.alpha * of_divergence
        if config.alpha < 1:
            ratios = losses.ratios(log_probs, log_probs.detach())  # 1, with the gradient of log pi
            of_tokens = of_tokens - (1 - config.alpha) * ratios * batch.token_values[ADVANTAGES]
        loss = losses.reduced(of_tokens, batch.label_counts, config.reducer)
        with torch.no_grad():
            sampled = batch.token_values[SAMPLED].double()
            own = ~sampled.isnan()
            apart = torch.where(own, (log_probs.double() - sampled).abs(), 0.0)
            diverged = of_divergence.double()
            sequences = float(len(batch.label_counts))
            count = float(len(log_probs)) if config.reducer == "token" else sequences
            sums = [loss, count, float(len(log_probs)), diverged.sum(), entropy.double().sum()]
            sums += [own.sum(), (diverged * own).sum(), apart.sum(), apart.max()]
            sums += [teacher.double().sum(), agrees.double().sum()]
            kept = [torch.as_tensor(value, dtype=torch.float64, device=loss.device) for value in sums]
        return loss, torch.stack(kept)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Raises `SamplerDiffers`."""
        labels, own = sums["labels"], sums["on_labels"]
        metrics = {"loss": sums["loss_sum"] / sums["count"], "divergence": sums["divergence"] / labels}
        metrics |= {"entropy": sums["entropy"] / labels, "on_policy_share": own / labels}
        if 0 < own < labels:
            metrics["divergence_on_policy"] = sums["on_divergence"] / own
            metrics["divergence_off_policy"] = (sums["divergence"] - sums["on_divergence"]) / (labels - own)
        if own:
            bound = self.config.max_sampler_difference
            metrics |= distance_from_sampler(sums["apart"] / own, sums["apart_max"], bound)
        return metrics

    def batch_metrics(self, examples: Sequence[Example]) -> dict[str, float]:
        return {}


class Distribution(DistillationObjective):
    """The divergence of whole distributions. `teacher_entropy`, and `top_agreement`: the share of tokens at which
    student and teacher find the same one likeliest."""

    def comparison(self, examples: Sequence[Example], passes: Passes) -> Comparison:
        with self._phases.apart("reference", within="update") as phase:
            states, logits = passes.states(examples, TEACHER.name)
            phase.tokens += sum(example.tokens for example in examples)
        return Comparison(states, logits, self.config.mixture)

    def diverges(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        compared = Compared(*output)
        return compared.divergences, compared.entropies, compared.teacher_entropies, compared.agrees

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        labels = sums["labels"]
        further = {"teacher_entropy": sums["teacher"] / labels, "top_agreement": sums["agrees"] / labels}
        return {**super().metrics(sums), **further}


class SampledTokens(DistillationObjective):
    """log pi - log pi_teacher of the sampled token, as a policy gradient whose advantage is its negative: the gradient
    of the reverse KL on average. `entropy` and `teacher_nll` are -log pi of the sampled tokens under each."""

    def diverges(self, output: Any, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        log_probs, teacher = output[0], batch.token_values[TEACHERS]
        now = log_probs.detach()
        of_tokens = losses.ratios(log_probs, now) * (now - teacher)
        return of_tokens, -now, -teacher, torch.zeros_like(now)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {**super().metrics(sums), "teacher_nll": sums["teacher"] / sums["labels"]}
