"""A language model that was trained to judge which of two responses is better, asked in both orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from steerboard_contracts.errors import BadRow
from steerboard_contracts.watching.ledger import PhaseTime
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.alignment.rendering.preference_prompt import Comparison, PreferencePrompt
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.rewards import CPU_BATCH_TOKENS, batches_by_tokens

# Logits that two ways to compute the same may differ by, in nats.
AGREE = 0.05


class Preference(NamedTuple):
    """The probability that the first of two responses is better, as the model gives it when that one comes first
    (`forth`) and when it comes second (`back`)."""

    forth: float
    back: float

    @property
    def p(self) -> float:
        """Both orders averaged: of the two responses exchanged it is 1 less this."""
        return (self.forth + self.back) / 2

    @property
    def flips(self) -> bool:
        """Whether the model prefers another response when they are exchanged."""
        return (self.forth - 0.5) * (self.back - 0.5) < 0


class TransformersPreferences:
    """`model` is a causal language model, in eval mode on `device`. Raises `BadInput` (`verdict_not_one_token`)."""

    def __init__(self, model: Any, renderer: Renderer, device: torch.device) -> None:
        self.renderer = renderer
        self.prompt = PreferencePrompt(renderer)
        self._module = PolicyModule(model)
        self._device = device
        self._pad = int(renderer.tokenizer.pad_token_id)
        self._checked = False

    def compare(
        self,
        comparisons: Sequence[Comparison],
        batch_tokens: int = CPU_BATCH_TOKENS,
        names: Sequence[str] | None = None,
        skip_unfit: bool = False,
        phase: PhaseTime | None = None,
    ) -> Iterator[tuple[list[int], list[Preference]]]:
        """(places, preferences) of some comparisons at a time, each place exactly once. `names`: what errors call them.
        Adds the tokens read to `phase`.

        Raises `BadRow` for two responses that fill the model's window, which `skip_unfit` leaves out.
        """
        orders = [order for comparison in comparisons for order in (comparison, comparison.swapped)]
        questions = self.prompt.questions(orders)
        sequences: list[list[int]] = [question.ids if question else [] for question in questions]
        unfit = {place // 2 for place, question in enumerate(questions) if question is None}
        if unfit and not skip_unfit:
            first = min(unfit)
            raise BadRow(
                f"{names[first] if names else f'comparison {first}'} cannot be judged: the two responses alone do not "
                f"fit into the preference model's window of {self.renderer.max_length} tokens",
                hint="Leave it out, generate shorter answers, or use a model with a larger window.",
            )
        kept = [place for place in range(len(comparisons)) if place not in unfit]
        # Both orders of a comparison go through the same pass.
        lengths = [2 * max(len(sequences[2 * place]), len(sequences[2 * place + 1])) for place in kept]
        if self._device.type == "cpu":
            batch_tokens = min(batch_tokens, CPU_BATCH_TOKENS)
        for batch in batches_by_tokens(lengths, batch_tokens):
            places = [kept[at] for at in batch]
            asked = [sequences[2 * place + order] for place in places for order in (0, 1)]
            leads = self._first(asked)
            if phase is not None:
                phase.tokens += sum(map(len, asked))
            results = zip(places, leads[::2], leads[1::2], strict=True)
            # Rounding must not decide between equal texts.
            tied = Preference(0.5, 0.5)
            yield (
                places,
                [
                    tied if comparisons[place].a == comparisons[place].b else Preference(forth, 1 - back)
                    for place, forth, back in results
                ],
            )

    @torch.inference_mode()
    def _first(self, sequences: list[list[int]]) -> list[float]:
        """The probability for each sequence of "A" against "B"."""
        width = max(map(len, sequences))
        ids = torch.full((len(sequences), width), self._pad, dtype=torch.int64)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence)
        ends = torch.tensor([row * width + len(sequence) - 1 for row, sequence in enumerate(sequences)])
        read, labels = ends.repeat_interleave(2), torch.tensor(self.prompt.verdicts).repeat(len(sequences))
        if not self._checked:
            self._check_head(ids[:1, : len(sequences[0])].to(self._device))
        log_probs, _ = self._module(ids.to(self._device), read.to(self._device), labels.to(self._device))
        of_both = log_probs.view(-1, 2).double()
        return torch.sigmoid(of_both[:, 0] - of_both[:, 1]).tolist()

    def _check_head(self, ids: torch.Tensor) -> None:
        """Whether the LM head's logits are the model's: some architectures do more to them."""
        read = torch.tensor([ids.shape[1] - 1] * 2, device=self._device)
        labels = torch.tensor(self.prompt.verdicts, device=self._device)
        logits = [self._module(ids, read, labels, probe=probe)[0].float() for probe in (None, "whole_head")]
        self._module.whole_head = bool((logits[0] - logits[1]).abs().max() > AGREE)
        self._checked = True
