"""The one place where a sample becomes token ids; training, scoring and generation all call it.

A sample's ids are those of the closed conversation as its template writes it. They begin with the ids that inference
gives the model, except where a tokenizer joins the last character of the prompt with the first one of the response:
then the token that has both is part of the response. Truncation takes the prompt from the left (keeping bos) and the
response from the right; it never removes the assistant marker or the score, and a truncated response gets no end token.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.conditions.score_words import is_score_token
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import ProcessReward
from steerboard_contracts.prompts import TemplateName
from steerboard_workers.alignment.rendering.chat_template import Span
from steerboard_workers.alignment.rendering.control_tokens import Written
from steerboard_workers.alignment.rendering.prefixes import common_length
from steerboard_workers.alignment.rendering.replies import inexact
from steerboard_workers.alignment.rendering.templates import ClosedText, OpenText, Prompt, Response, Template

# Tokens of a generated answer, by default; a model with a small window gets half of it.
DEFAULT_NEW_TOKENS = 256
# The most rows refused by a template that are named.
NAMED_ROWS = 3
FAULTY_ROWS = "Or leave these rows out, merge turns of one role that follow each other, or move the system text."

G = TypeVar("G")
T = TypeVar("T")


@dataclass(frozen=True)
class Rendered:
    """One sequence. `supervised[i]`: token i is learned (never the prompt's own text, the score, or padding)."""

    ids: list[int]
    prompt_length: int
    supervised: list[bool]
    truncated: bool


@dataclass(frozen=True)
class RenderedGroup:
    """Responses that share one prompt, cut alike: `prompt + responses[i]` fits into the window.

    `leads[i]`: how many tokens of response i belong to the prompt and are not learned; more than 0 only where another
    response's first character is joined with the prompt's last one. `tails[i]`: how many come after its end token.
    """

    prompt: list[int]
    prompt_supervised: list[bool]
    responses: list[list[int]]
    truncated: bool
    leads: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _PromptTokens:
    ids: list[int]
    supervised: list[bool]
    kept: int  # tokens at the end that truncation may not touch


@dataclass(frozen=True)
class _Answer:
    ids: list[int]
    lead: int
    tail: int


class UnrenderableRows(BadInput):
    """Conversations that the template cannot write. `faults`: by place in what was given, or by row of `what`."""

    code = "bad_chat_template"

    def __init__(self, faults: Mapping[int, BadInput], count: int, what: str = "") -> None:
        first = next(iter(faults.values()))
        named = [f"row {row}: {fault.detail}" for row, fault in list(faults.items())[:NAMED_ROWS]]
        many = f"{len(faults)} of {count} rows{what and ' of '}{what} cannot be learned from or answered. "
        detail = many + "; ".join(named) if count > 1 else first.detail
        super().__init__(detail, code=first.code, hint=f"{first.hint} {FAULTY_ROWS}" if count > 1 else first.hint)
        self.faults = dict(faults)


class Renderer:
    """Renders for one tokenizer, template and window of `max_length` tokens.

    `learn`: "last" supervises only the response, "all" earlier assistant turns as well. `whole`: responses with what
    the template writes behind their end token, which is where a reward is read. `condition`: how scores are written.
    `process`: of a process reward model, how it is read.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: TemplateName,
        max_length: int,
        learn: str = "last",
        *,
        whole: bool = False,
        condition: ConditionFormat | None = None,
        process: ProcessReward | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.process = process
        self.template = Template(tokenizer, template, learn_all=learn == "all", condition=condition)
        self.max_length = max_length
        self.whole = whole
        self.end_id: int = tokenizer.convert_tokens_to_ids(self.template.end_token)
        self.bos_id: int | None = tokenizer.bos_token_id
        self._tail_lengths: dict[str, int] = {}
        self._tails: dict[str, list[int]] = {}
        # Around each use of the tokenizer for whole texts: its library may hang or crash.
        self.tokenising: Callable[[], AbstractContextManager[None]] = nullcontext

    def writing(self, condition: ConditionFormat | None) -> Renderer:
        """This renderer for a policy that is asked in another way. Raises what `Template.writing` does."""
        other = copy.copy(self)
        other.template = self.template.writing(condition)
        return other

    @property
    def closing_ids(self) -> list[int]:
        """Tokens behind an answer's end token, where responses have them."""
        shape = self.template.reply_shape
        return self._tail_ids(shape.after[shape.end :]) if self.whole and shape.end else []

    # -- inference ------------------------------------------------------------------------------------------------

    @property
    def stop_ids(self) -> list[int]:
        """Tokens on which generation ends: the supervised end token and the tokenizer's own."""
        return sorted({self.end_id, self.tokenizer.eos_token_id})

    @property
    def silent_ids(self) -> list[int]:
        """Tokens that only requests have, which generation never draws."""
        return self.template.control.ids_where(is_score_token)

    def prompt_ids(self, prompt: Prompt, score_text: str | None = None, room: int | None = None) -> list[int]:
        """Ids up to where the response begins. With `room`, cut from the left so that so many tokens stay free."""
        return self.prompts_ids([prompt], [score_text], room)[0]

    def prompts_ids(
        self, prompts: Sequence[Prompt], scores: Sequence[str | None] | None = None, room: int | None = None
    ) -> list[list[int]]:
        """`prompt_ids` of many prompts in one call of the tokenizer."""
        tokens = self._prompts(prompts, scores)
        if room is None:
            return [t.ids for t in tokens]
        return [self._cut_prompt(t, max(self.max_length - room, t.kept + 1))[0] for t in tokens]

    def render_prompts(
        self, prompts: Sequence[Prompt], scores: Sequence[str | None] | None, room: int
    ) -> list[RenderedGroup | None]:
        """Prompts to which answers of `room` tokens will be sampled, as inference has them. None: the window leaves no
        room for the marker and the score."""
        tokens = self._prompts(prompts, scores)
        return [self._prompt_alone(prompt, self.max_length - room) for prompt in tokens]

    def _prompts(self, prompts: Sequence[Prompt], scores: Sequence[str | None] | None) -> list[_PromptTokens]:
        given = list(zip(prompts, scores or [None] * len(prompts), strict=True))
        texts = _each(given, lambda arguments: self.template.open(*arguments))
        with self.tokenising():
            tokenised = self._tokenise([text.written for text in texts])
            return [
                _PromptTokens(ids, [False] * len(ids), min(len(ids), self._tail_length(text)))
                for ids, text in zip(tokenised, texts, strict=True)
            ]

    def _prompt_alone(self, prompt: _PromptTokens, room: int) -> RenderedGroup | None:
        if room < min(len(prompt.ids), prompt.kept + (self.bos_id is not None)):
            return None
        ids, _ = self._cut_prompt(prompt, room)
        return RenderedGroup(ids, [False] * len(ids), [], len(ids) < len(prompt.ids))

    def between_ids(self, prompt: Prompt, answer_at: int) -> list[int]:
        """Ids between the end token of the answer at `answer_at` of a conversation and where the next one begins: they
        follow the ids that were sampled, which are not tokenised again. Raises what `Template.between` does."""
        written = self.template.between(prompt, answer_at)
        with self.tokenising():
            ids = self._tokenise([Written(self.template.end_token + written.text, written.literals)])[0]
        if ids[0] != self.end_id:
            raise inexact("its tokenizer joins the end of an answer with what follows")
        return ids[1:]

    def response_text(self, ids: Sequence[int]) -> str:
        """The text of generated ids: control tokens and the one leading space are gone."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.removeprefix(" ")

    # -- training and scoring -------------------------------------------------------------------------------------

    def render(self, prompt: Prompt, response: Response, score_text: str | None = None) -> Rendered | None:
        """Returns None where the window leaves no room for the marker, the score and one token of the response."""
        return self.render_many([prompt], [response], [score_text])[0]

    def render_many(
        self, prompts: Sequence[Prompt], responses: Sequence[Response], scores: Sequence[str | None] | None = None
    ) -> list[Rendered | None]:
        """`render` of many samples in two calls of the tokenizer."""
        groups = self.render_groups(prompts, [[response] for response in responses], scores)
        return [None if group is None else _single(group) for group in groups]

    def render_groups(
        self,
        prompts: Sequence[Prompt],
        responses: Sequence[Sequence[Response]],
        scores: Sequence[str | None] | None = None,
    ) -> list[RenderedGroup | None]:
        """Several responses to each prompt (a pair, n samples), the prompt cut the same way for all of them.

        Raises `UnrenderableRows`.
        """
        given = list(zip(prompts, responses, scores or [None] * len(prompts), strict=True))
        texts = _each(
            given,
            lambda group: (
                self.template.open(group[0], group[2]),
                [self.template.close(group[0], response, group[2]) for response in group[1]],
            ),
        )
        opened, closed = [prompt for prompt, _ in texts], [group for _, group in texts]
        with self.tokenising():
            prompt_ids = self._tokenise([text.written for text in opened])
            kept = [self._tail_length(text) for text in opened]
            ids = iter(self._tokenise([text.written for group in closed for text in group]))
            return [
                self._group(opened[place], prompt_ids[place], kept[place], group, [next(ids) for _ in group])
                for place, group in enumerate(closed)
            ]

    def _group(
        self, opened: OpenText, prompt_ids: list[int], kept: int, closed: list[ClosedText], ids: list[list[int]]
    ) -> RenderedGroup | None:
        borders = [self._borders(opened, prompt_ids, text, own) for text, own in zip(closed, ids, strict=True)]
        shared = common_length([own[:start] for own, (start, _) in zip(ids, borders, strict=True)])
        prompt = ids[0][:shared]
        answers = []
        for own, (start, end) in zip(ids, borders, strict=True):
            whole = own[len(prompt) :] if self.whole else own[len(prompt) : end]
            if not self.template.reply_shape.end:
                whole = [*own[len(prompt) : end], self.end_id]  # the template ends answers by no token
            answers.append(_Answer(whole, start - len(prompt), max(0, len(own) - end) if self.whole else 0))
        learned = self._learned(closed[0], len(prompt)) if closed else [False] * len(prompt)
        return self._fit(_PromptTokens(prompt, learned, min(kept, len(prompt))), answers)

    def _borders(self, opened: OpenText, prompt_ids: list[int], closed: ClosedText, ids: list[int]) -> tuple[int, int]:
        """The beginning and end of the answer, its end token included, in the tokens of a closed conversation."""
        (begins, ends), text = closed.answer, closed.written.text
        as_asked = begins == len(opened.written.text) and ids[: len(prompt_ids)] == prompt_ids
        tail = self._tail_ids(text[ends:])
        as_always = not tail or (ids[-len(tail) :] == tail and ids[-len(tail) - 1] == self.end_id)
        start, end = len(prompt_ids), len(ids) - len(tail)
        if not as_asked or not as_always:
            offsets = self.template.control.encode([closed.written])[0].offsets
            start = (
                start
                if as_asked
                else next(at for at, offset in enumerate(offsets) if _within(offset, (begins, len(text))))
            )
            end = end if as_always else next((at for at, offset in enumerate(offsets) if offset[0] >= ends), len(ids))
        return start, end

    def _tail_ids(self, tail: str) -> list[int]:
        """What the template writes behind the end token of an answer, as it is tokenised there."""
        if tail not in self._tails:
            ids = self._tokenise([Written(self.template.end_token + tail)])[0]
            self._tails[tail] = ids[1:] if tail else []
        return self._tails[tail]

    def _learned(self, closed: ClosedText, length: int) -> list[bool]:
        """Which of the first tokens of a closed conversation are of earlier answers."""
        if not closed.replies:
            return [False] * length
        offsets = self.template.control.encode([closed.written])[0].offsets[:length]
        return [any(_within(offset, reply) for reply in closed.replies) for offset in offsets]

    def _fit(self, prompt: _PromptTokens, answers: list[_Answer]) -> RenderedGroup | None:
        """Cut to the window. A response may always have half of it; the prompt yields from the left."""
        longest = max(len(answer.ids) for answer in answers)
        response_room = min(longest, max(self.max_length - len(prompt.ids), self.max_length // 2))
        prompt_room = self.max_length - response_room
        if prompt_room < prompt.kept + (self.bos_id is not None):
            return None
        ids, supervised = self._cut_prompt(prompt, prompt_room)
        room = self.max_length - len(ids)
        return RenderedGroup(
            prompt=ids,
            prompt_supervised=supervised,
            responses=[answer.ids[:room] for answer in answers],
            truncated=len(ids) < len(prompt.ids) or any(len(answer.ids) > room for answer in answers),
            leads=[answer.lead for answer in answers],
            tails=[max(0, answer.tail - max(0, len(answer.ids) - room)) for answer in answers],
        )

    def _cut_prompt(self, prompt: _PromptTokens, room: int) -> tuple[list[int], list[bool]]:
        if len(prompt.ids) <= room:
            return prompt.ids, prompt.supervised
        if self.bos_id is not None and prompt.ids[0] == self.bos_id:
            keep = room - 1
            return [self.bos_id, *prompt.ids[len(prompt.ids) - keep :]], [False, *prompt.supervised[-keep:]]
        return prompt.ids[-room:], prompt.supervised[-room:]

    # -- tokenising -----------------------------------------------------------------------------------------------

    def _tokenise(self, texts: Sequence[Written]) -> list[list[int]]:
        plain = [text.text for text in texts if not text.literals]
        if plain:
            given = self.tokenizer(plain, add_special_tokens=False, return_attention_mask=False)["input_ids"]
        encoded = iter(given if plain else [])
        spelled = iter(self.template.control.encode([text for text in texts if text.literals]))
        return [next(spelled).ids if text.literals else next(encoded) for text in texts]

    def _tail_length(self, text: OpenText) -> int:
        """Tokens of the marker and score; one more than they take alone, since the border may fall otherwise."""
        tail = text.written.text[len(text.written.text) - text.tail :]
        if tail not in self._tail_lengths:
            self._tail_lengths[tail] = len(self._tokenise([Written(tail)])[0]) + 1
        return self._tail_lengths[tail]


def _each(given: Sequence[G], write: Callable[[G], T]) -> list[T]:
    """What `write` makes of each. Raises `UnrenderableRows` with all that fail."""
    written, faults = [], {}
    for place, item in enumerate(given):
        try:
            written.append(write(item))
        except BadInput as fault:
            faults[place] = fault
    if faults:
        raise UnrenderableRows(faults, len(given))
    return written


def _within(token: Span, span: Span) -> bool:
    """Whether a token has a character of `span`. A token of no character belongs to where it begins."""
    start, end = token
    return start < span[1] and (end > span[0] or start >= span[0])


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
    response, (lead,), (tail,) = group.responses[0], group.leads, group.tails
    learned = [False] * lead + [True] * (len(response) - lead - tail) + [False] * tail
    return Rendered(
        ids=group.prompt + response,
        prompt_length=len(group.prompt),
        supervised=group.prompt_supervised + learned,
        truncated=group.truncated,
    )
