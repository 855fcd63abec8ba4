"""The one place where a sample becomes token ids; training, scoring and generation all call it.

Prompt ids are exactly what inference tokenises. A response is tokenised together with its prompt, so that the
border comes out as the model would write it; where that changes the prompt's own ids, it is tokenised apart.
Truncation takes the prompt from the left (keeping bos) and the response from the right; it never removes the
assistant marker or the score, and a truncated response gets no end token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import TemplateName
from steerboard_workers.alignment.rendering.templates import Prompt, PromptText, Template, split_literals

# Tokens of a generated answer, by default; a model with a small window gets half of it.
DEFAULT_NEW_TOKENS = 256


@dataclass(frozen=True)
class Rendered:
    """One sequence. `supervised[i]`: token i is learned (never the prompt's own text, the score, or padding)."""

    ids: list[int]
    prompt_length: int
    supervised: list[bool]
    truncated: bool


@dataclass(frozen=True)
class RenderedGroup:
    """Responses that share one prompt, cut alike: `prompt + responses[i]` fits into the window."""

    prompt: list[int]
    prompt_supervised: list[bool]
    responses: list[list[int]]
    truncated: bool


@dataclass(frozen=True)
class _PromptTokens:
    ids: list[int]
    supervised: list[bool]
    kept: int  # tokens at the end that truncation may not touch


class Renderer:
    """Renders for one tokenizer, template and window of `max_length` tokens.

    `learn`: "last" supervises only the response, "all" earlier assistant turns as well.
    """

    def __init__(self, tokenizer: Any, template: TemplateName, max_length: int, learn: str = "last") -> None:
        self.tokenizer = tokenizer
        self.template = Template(tokenizer, template)
        self.max_length = max_length
        self._learn_all = learn == "all"
        self.end_id: int = tokenizer.convert_tokens_to_ids(self.template.end_token)
        self.bos_id: int | None = tokenizer.bos_token_id
        self._tail_lengths: dict[str, int] = {}
        # Around each use of the tokenizer for whole texts: its library may hang or crash.
        self.tokenising: Callable[[], AbstractContextManager[None]] = nullcontext

    # -- inference ------------------------------------------------------------------------------------------------

    @property
    def stop_ids(self) -> list[int]:
        """Tokens on which generation ends: the supervised end token and the tokenizer's own."""
        return sorted({self.end_id, self.tokenizer.eos_token_id})

    def prompt_ids(self, prompt: Prompt, score_text: str | None = None, room: int | None = None) -> list[int]:
        """Ids up to where the response begins. With `room`, cut from the left so that so many tokens stay free."""
        return self.prompts_ids([prompt], [score_text], room)[0]

    def prompts_ids(
        self, prompts: Sequence[Prompt], scores: Sequence[str | None] | None = None, room: int | None = None
    ) -> list[list[int]]:
        """`prompt_ids` of many prompts in one call of the tokenizer."""
        texts = [self.template.prompt(p, s) for p, s in zip(prompts, scores or [None] * len(prompts), strict=True)]
        with self.tokenising():
            tokens = self._tokenise_prompts(texts)
        if room is None:
            return [t.ids for t in tokens]
        return [self._cut_prompt(t, max(self.max_length - room, t.kept + 1))[0] for t in tokens]

    def render_prompts(
        self, prompts: Sequence[Prompt], scores: Sequence[str | None] | None, room: int
    ) -> list[RenderedGroup | None]:
        """Prompts to which answers of `room` tokens will be sampled, as inference has them. None: the window leaves no
        room for the marker and the score."""
        texts = [self.template.prompt(p, s) for p, s in zip(prompts, scores or [None] * len(prompts), strict=True)]
        with self.tokenising():
            tokens = self._tokenise_prompts(texts)
        return [self._prompt_alone(one, self.max_length - room) for one in tokens]

    def _prompt_alone(self, prompt: _PromptTokens, room: int) -> RenderedGroup | None:
        if room < min(len(prompt.ids), prompt.kept + (self.bos_id is not None)):
            return None
        ids, _ = self._cut_prompt(prompt, room)
        return RenderedGroup(ids, [False] * len(ids), [], len(ids) < len(prompt.ids))

    def response_text(self, ids: Sequence[int]) -> str:
        """The text of generated ids: control tokens and the one leading space are gone."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.removeprefix(" ")

    # -- training and scoring -------------------------------------------------------------------------------------

    def render(self, prompt: Prompt, response: str, score_text: str | None = None) -> Rendered | None:
        """None: the window leaves no room for the marker, the score and one token of the response."""
        return self.render_many([prompt], [response], [score_text])[0]

    def render_many(
        self, prompts: Sequence[Prompt], responses: Sequence[str], scores: Sequence[str | None] | None = None
    ) -> list[Rendered | None]:
        """`render` of many samples in two calls of the tokenizer."""
        groups = self.render_groups(prompts, [[response] for response in responses], scores)
        return [None if group is None else _single(group) for group in groups]

    def render_groups(
        self,
        prompts: Sequence[Prompt],
        responses: Sequence[Sequence[str]],
        scores: Sequence[str | None] | None = None,
    ) -> list[RenderedGroup | None]:
        """Several responses to each prompt (a pair, n samples), the prompt cut the same way for all of them."""
        with self.tokenising():
            return self._render_groups(prompts, responses, scores or [None] * len(prompts))

    def _render_groups(
        self, prompts: Sequence[Prompt], responses: Sequence[Sequence[str]], scores: Sequence[str | None]
    ) -> list[RenderedGroup | None]:
        texts = [self.template.prompt(p, s) for p, s in zip(prompts, scores, strict=True)]
        tokens = self._tokenise_prompts(texts)
        joints, places = [], []
        ids: list[list[list[int]]] = [[[]] * len(group) for group in responses]
        for i, group in enumerate(responses):
            separator = self.template.separator(scores[i])
            for j, response in enumerate(group):
                if texts[i].literals or self.template.is_literal(response):
                    ids[i][j] = self._tokenise_literally(separator + response)
                else:
                    joints.append(texts[i].text + separator + response)
                    places.append((i, j, separator + response))
        apart = []
        for (i, j, text), joint in zip(places, self._tokenise(joints), strict=True):
            start = tokens[i].ids
            if joint[: len(start)] == start and len(joint) > len(start):
                ids[i][j] = joint[len(start) :]
            else:
                apart.append((i, j, text))
        for (i, j, _), alone in zip(apart, self._tokenise([text for _, _, text in apart]), strict=True):
            ids[i][j] = alone
        return [self._fit(tokens[i], ids[i]) for i in range(len(texts))]

    def _fit(self, prompt: _PromptTokens, responses: list[list[int]]) -> RenderedGroup | None:
        """Cut to the window. A response may always have half of it; the prompt yields from the left."""
        longest = max(len(response) for response in responses) + 1
        response_room = min(longest, max(self.max_length - len(prompt.ids), self.max_length // 2))
        prompt_room = self.max_length - response_room
        if prompt_room < prompt.kept + (self.bos_id is not None):
            return None
        ids, supervised = self._cut_prompt(prompt, prompt_room)
        fitted = []
        truncated = len(ids) < len(prompt.ids)
        room = self.max_length - len(ids)
        for response in responses:
            if len(response) + 1 <= room:
                fitted.append([*response, self.end_id])
            else:
                fitted.append(response[:room])
                truncated = True
        return RenderedGroup(ids, supervised, fitted, truncated)

    def _cut_prompt(self, prompt: _PromptTokens, room: int) -> tuple[list[int], list[bool]]:
        if len(prompt.ids) <= room:
            return prompt.ids, prompt.supervised
        if self.bos_id is not None and prompt.ids[0] == self.bos_id:
            keep = room - 1
            return [self.bos_id, *prompt.ids[len(prompt.ids) - keep :]], [False, *prompt.supervised[-keep:]]
        return prompt.ids[-room:], prompt.supervised[-room:]

    # -- tokenising -----------------------------------------------------------------------------------------------

    def _tokenise(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer(texts, add_special_tokens=False, return_attention_mask=False)["input_ids"]
        return ids

    def _tokenise_literally(self, text: str) -> list[int]:
        """Special tokens' spellings as plain characters."""
        ids: list[int] = self.tokenizer(
            text, add_special_tokens=False, return_attention_mask=False, split_special_tokens=True
        )["input_ids"]
        return ids

    def _tokenise_prompts(self, texts: list[PromptText]) -> list[_PromptTokens]:
        whole = [text for text in texts if not text.literals]
        plain = iter(self._tokenise([text.text for text in whole]))
        tokens = []
        for text in texts:
            ids = self._with_literals(text) if text.literals else next(plain)
            supervised = [False] * len(ids)
            if self._learn_all and text.replies:
                supervised = self._reply_mask(text, len(ids))
            tokens.append(_PromptTokens(ids, supervised, min(len(ids), self._tail_length(text))))
        return tokens

    def _tail_length(self, text: PromptText) -> int:
        """Tokens of the marker and score; one more than they take alone, since the border may fall otherwise."""
        tail = text.text[len(text.text) - text.tail :]
        if tail not in self._tail_lengths:
            self._tail_lengths[tail] = len(self._tokenise([tail])[0]) + 1
        return self._tail_lengths[tail]

    def _with_literals(self, text: PromptText) -> list[int]:
        ids: list[int] = []
        for piece, literal in split_literals(text.text):
            ids += self._tokenise([piece])[0] if literal is None else self._tokenise_literally(text.literals[literal])
        return ids

    def _reply_mask(self, text: PromptText, length: int) -> list[bool]:
        """Which prompt tokens belong to earlier assistant turns, their end tokens included."""
        if text.literals:
            # Rare: offsets are unknown where literals were put in, so the pieces between reply borders are counted.
            borders = [0, *(at for reply in text.replies for at in reply), len(text.text)]
            mask: list[bool] = []
            for n, (start, end) in enumerate(pairwise(borders)):
                piece = PromptText(text.text[start:end], tail=0, literals=text.literals)
                mask += [n % 2 == 1] * len(self._with_literals(piece))
            return (mask + [False] * length)[:length]
        encoded = self.tokenizer(text.text, add_special_tokens=False, return_offsets_mapping=True)
        offsets = encoded["offset_mapping"]
        return [any(start <= at < end for start, end in text.replies) for at, _ in offsets]


def answer_room(window: int, max_new_tokens: int | None) -> int:
    """How many tokens an answer may have. Raises `BadInput` (`too_many_new_tokens`) when prompts keep no room."""
    room = max_new_tokens or min(DEFAULT_NEW_TOKENS, window // 2)
    if room >= window:
        raise BadInput(
            f"max_new_tokens is {room}, but the model's window has {window} tokens in all",
            code="too_many_new_tokens",
            hint=f"Ask for at most {window // 2}, so prompts keep some room.",
        )
    return room


def _single(group: RenderedGroup) -> Rendered:
    response = group.responses[0]
    return Rendered(
        ids=group.prompt + response,
        prompt_length=len(group.prompt),
        supervised=group.prompt_supervised + [True] * len(response),
        truncated=group.truncated,
    )
