"""How a language model is prompted for which of two responses is better, in training and in use.

A user turn `[CONTEXT] {context} [RESPONSE A] {a} [RESPONSE B] {b} \\n`, answered by "A" or "B" (Section 2.3 of arXiv
2405.07863). The context is the conversation in a plain template of its own: the model's chat template renders the one
turn, and cannot take the conversation's turns for more. The templates are those of the authors' published model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steerboard_contracts.errors import BadInput
from steerboard_contracts.tools import answer_text, turn_text
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rendering.templates import Prompt, Response, turns_of

VERDICTS = ("A", "B")
# Tokens of the window that a shortened context may leave empty.
SPARE = 4


class Comparison(NamedTuple):
    """Two responses to one prompt: `a` is the first."""

    prompt: Prompt
    a: Response
    b: Response

    @property
    def swapped(self) -> Comparison:
        return Comparison(self.prompt, self.b, self.a)


class Question(NamedTuple):
    """Token ids up to where the verdict comes. `cut`: the context has lost its beginning."""

    ids: list[int]
    cut: bool


def context_text(prompt: Prompt) -> str:
    """Calls of tools are lines of their turn."""
    texts = ((turn.role, turn_text({"content": turn.content, **turn.more})) for turn in turns_of(prompt))
    return "\n" + "".join(f"\n\n<turn> {role}\n {text}" for role, text in texts) + "\n\n\n"


class PreferencePrompt:
    """The prompt of one renderer. `verdicts`: the tokens of "A" and "B" as the template has them; what both begin with,
    such as a token for the space before them, belongs to the question.

    Raises `BadInput` (`verdict_not_one_token`) for a tokenizer that writes them otherwise.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer
        group = renderer.render_groups([[{"role": "user", "content": "x"}]], [VERDICTS])[0]
        a, b = (group.responses[0][:-1], group.responses[1][:-1]) if group and not group.truncated else ([], [])
        same = len(a) - 1
        if len(a) != len(b) or not a or a[:same] != b[:same] or a == b:
            raise BadInput(
                f"the model's tokenizer does not write A and B as one token each in template {renderer.template.name}, "
                f"but as {a} and {b}",
                code="verdict_not_one_token",
                hint="Use another template, a larger max_length, or a model with another tokenizer.",
            )
        self._same = a[:same]
        self.verdicts: tuple[int, int] = (a[same], b[same])

    def questions(self, comparisons: Sequence[Comparison]) -> list[Question | None]:
        """Returns None where the responses alone do not fit. Only the context is ever cut, from its beginning."""
        contexts = [context_text(comparison.prompt) for comparison in comparisons]
        whole = self._ids(contexts, comparisons)
        return [
            Question(ids, False) if len(ids) <= self._room else self._shortened(context, comparison, len(ids))
            for ids, context, comparison in zip(whole, contexts, comparisons, strict=True)
        ]

    @property
    def _room(self) -> int:
        return self.renderer.max_length - 1  # the verdict

    def _ids(self, contexts: Sequence[str], comparisons: Sequence[Comparison]) -> list[list[int]]:
        texts = [
            f"[CONTEXT] {context} [RESPONSE A] {answer_text(comparison.a)} [RESPONSE B] {answer_text(comparison.b)} \n"
            for context, comparison in zip(contexts, comparisons, strict=True)
        ]
        prompts = self.renderer.prompts_ids([[{"role": "user", "content": text}] for text in texts])
        return [ids + self._same for ids in prompts]

    def _shortened(self, context: str, comparison: Comparison, length: int) -> Question | None:
        with self.renderer.tokenising():
            # Special tokens' spellings count as the characters that they are rendered as.
            encoded = self.renderer.tokenizer(
                context, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
            )
        starts = [*(start for start, _ in encoded["offset_mapping"]), len(context)]
        # A shorter context may have other tokens at its beginning, so the first guess is nearly right only.
        low, high, best, drop = 0, len(starts), None, length - self._room
        while low < high:
            drop = min(drop, high - 1)
            ids = self._ids([context[starts[drop] :]], [comparison])[0]
            spare = self._room - len(ids)
            if spare < 0:
                low, drop = drop + 1, drop - spare
                continue
            best, high = Question(ids, True), drop
            if spare <= SPARE:
                break
            drop = (low + high) // 2
        return best
