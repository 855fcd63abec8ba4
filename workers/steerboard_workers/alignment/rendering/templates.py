"""Conversations as text, in the paper's plain template or in the tokenizer's own chat template.

    plain   {bos}[System: {s} ]User: {u} Assistant:[ <rm_score> 5.00] {response}{eos}
    chat    the tokenizer's template; the condition opens the assistant's message

or, as a policy's `ConditionFormat` has it, the condition ends the last user turn.

An answer goes through the template like every other turn: what is learned is what the template writes for the closed
conversation, with what it trims, and with what it writes before and after an answer. `reply_shape` finds that out once,
by a conversation whose answer is a character that no one types.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import TemplateName
from steerboard_contracts.tools import TOOL_FIELDS, template_turn
from steerboard_contracts.turns import Message, SampleMessage
from steerboard_workers.alignment.rendering.chat_template import ChatTemplate, Span
from steerboard_workers.alignment.rendering.control_tokens import ControlTokens, Written
from steerboard_workers.alignment.rendering.prefixes import common_length
from steerboard_workers.alignment.rendering.replies import ReplyShape, earlier_replies, inexact
from steerboard_workers.alignment.rendering.tool_turns import (
    check_answer_written,
    check_no_tools,
    check_written,
    mapped_texts,
)

# The answer of the conversation that `reply_shape` reads. Private use, and not a placeholder of `control_tokens`.
PROBE = "\ue0f8"
_DIGITS = ConditionFormat.of_score()


class Turn(NamedTuple):
    """`more`: what a turn of a conversation with tools has besides, as `tools.stored_turn` keeps it."""

    role: str
    content: str
    more: Mapping[str, Any] = MappingProxyType({})


Prompt = Sequence[Message | SampleMessage | dict[str, Any]]
# A text, or a turn that calls tools as samples keep it.
Response = str | dict[str, Any]


def turns_of(prompt: Prompt) -> list[Turn]:
    return [_turn(message) for message in prompt]


def _answer(response: Response) -> Turn:
    if isinstance(response, str):
        return Turn("assistant", response)
    return Turn("assistant", response["content"], {"tool_calls": response["tool_calls"]})


def _turn(message: Message | SampleMessage | dict[str, Any]) -> Turn:
    given = message if isinstance(message, dict) else message.model_dump(exclude_none=True)
    more = {name: given[name] for name in TOOL_FIELDS if given.get(name) is not None} if len(given) > 2 else {}
    return Turn(given["role"], given["content"], more)


@dataclass(frozen=True)
class OpenText:
    """A prompt with the generation prompt and the condition. `tail` is how many characters at the end (both of these,
    and what is between them) truncation must keep."""

    written: Written
    tail: int


@dataclass(frozen=True)
class ClosedText:
    """A conversation with its last answer, whose characters, end token included, are `answer`. `replies` are those of
    earlier answers that are learned. What the template writes behind the end token comes after `answer`."""

    written: Written
    answer: Span
    replies: tuple[Span, ...] = ()


class Template:
    """Renders for one tokenizer. `learn_all`: find earlier answers as well. `condition`: how the policy is asked.

    Raises what `writing` does.
    """

    def __init__(
        self,
        tokenizer: Any,
        name: TemplateName,
        *,
        learn_all: bool = False,
        condition: ConditionFormat | None = None,
    ) -> None:
        self.name = name
        self.control = ControlTokens(tokenizer)
        self.chat = ChatTemplate(tokenizer)
        self._bos: str = tokenizer.bos_token or ""
        self._eos: str = tokenizer.eos_token
        self._learn_all = learn_all
        if name == "chat":
            self.control.add(self.end_token)
        self._form = self._checked(condition)

    def writing(self, condition: ConditionFormat | None) -> Template:
        """This template for a policy that is asked in another way. Raises `BadInput` (`control_token_in_text`,
        `bad_score_tokens`)."""
        other = copy.copy(self)
        other._form = self._checked(condition)
        return other

    def open(self, prompt: Prompt, condition: str | None) -> OpenText:
        """Raises what `ChatTemplate.write` does."""
        literals: list[str] = []
        turns = self._protect(turns_of(prompt), literals)
        request, opening = self._form.request(condition or ""), self._form.opening(condition or "")
        text, tail = self._opened(_requesting(turns, request), opening)
        if request:
            # Where the request's end differs from any other, by construction: its words may be in the prompt as well.
            tail = len(text) - common_length([text, self._opened(_requesting(turns, PROBE), opening)[0]])
        return OpenText(Written(text, tuple(literals)), tail)

    def _opened(self, turns: Sequence[Turn], opening: str) -> tuple[str, int]:
        """(a prompt as inference has it, how many of its characters are the generation prompt and `opening`)."""
        if self.name == "plain":
            check_no_tools(turns)
            ending = f" {opening}" if opening else ""
            return self._plain(turns)[0] + ending, len(" Assistant:" + ending)
        check_written(self.chat, _messages(turns))
        closed = self.chat.write(_messages(turns), answering=False)
        text = self._conditioned(self.chat.write(_messages(turns), answering=True), opening)
        return text, len(text) - common_length([text, closed])

    def close(self, prompt: Prompt, response: Response, condition: str | None) -> ClosedText:
        """Raises what `ChatTemplate.write` does, and `BadInput` (`inexact_template`) where the closed conversation does
        not begin with the prompt that inference is given, or the borders of an answer cannot be found."""
        literals: list[str] = []
        turns = self._protect([*turns_of(prompt), _answer(response)], literals)
        request, opening = self._form.request(condition or ""), self._form.opening(condition or "")
        asked, answer = _requesting(turns[:-1], request), turns[-1]
        if self.name == "plain":
            check_no_tools([*asked, answer])
            text, replies = self._plain(asked)
            opened = text + (f" {opening}" if opening else "")
            whole = f"{opened} {answer.content}{self._eos}"
            earlier = tuple(replies) if self._learn_all else ()
            return ClosedText(Written(whole, tuple(literals)), (len(opened), len(whole)), earlier)
        check_answer_written(self.chat, _messages([*asked, answer]))
        if opening:
            answer = answer._replace(content=f"{opening} {answer.content}" if answer.content else opening)
        messages = _messages([*asked, answer])
        shape, whole = self.reply_shape, self.chat.write(messages, answering=False)
        opened = self._conditioned(self.chat.write(messages[:-1], answering=True), opening)
        opened = opened if opening else opened.removesuffix(shape.dropped)
        if not whole.startswith(opened):
            raise inexact("the closed conversation does not begin with the prompt that the model is given")
        if not whole.endswith(shape.after):
            raise inexact("what it writes after an answer depends on the answer")
        end = len(whole) - len(shape.after) + shape.end
        replies = earlier_replies(self.chat, shape, messages, whole) if self._learn_all else []
        return ClosedText(Written(whole, tuple(literals)), (len(opened), end), tuple(replies))

    def between(self, prompt: Prompt, answer_at: int) -> Written:
        """What is between the end token of the answer at `answer_at` and the next one: the turns after it, and the
        generation prompt. Raises what `ChatTemplate.write` does, and `BadInput` (`inexact_template`)."""
        literals: list[str] = []
        turns = self._protect(turns_of(prompt), literals)
        turns[answer_at] = Turn("assistant", PROBE)
        shape = self.reply_shape
        if self.name == "plain":
            check_no_tools(turns)
            whole = self._plain(turns)[0]
        else:
            whole = self.chat.write(_messages(turns), answering=True)
        _, found, after = whole.partition(PROBE)
        if not found or PROBE in after or not after.startswith(shape.ending):
            raise inexact("what it writes after an answer depends on what follows")
        return Written(after[shape.end :], tuple(literals))

    @cached_property
    def end_token(self) -> str:
        """The token that closes an answer: the tokenizer's eos, or what its chat template writes instead."""
        if self.name == "plain":
            return self._eos
        return self.reply_shape.ending.strip() or self._eos

    @cached_property
    def reply_shape(self) -> ReplyShape:
        """Raises what `ChatTemplate.write` does, and `BadInput` (`inexact_template`) for a template that does not write
        what an assistant wrote."""
        if self.name == "plain":
            return ReplyShape(dropped="", lead=" ", after=self._eos, end=len(self._eos))
        asked = [{"role": "user", "content": "x"}]
        opened = self.chat.write(asked, answering=True)
        closed = self.chat.write([*asked, {"role": "assistant", "content": PROBE}], answering=False)
        if closed.count(PROBE) != 1:
            raise inexact(f"it writes an assistant's answer {closed.count(PROBE)} times")
        head, _, after = closed.partition(PROBE)
        same = common_length([opened, head])
        token = self.control.first_in(after)
        end = token.end() if token is not None and not after[: token.start()].strip() else 0
        return ReplyShape(dropped=opened[same:], lead=head[same:], after=after, end=end)

    def _plain(self, turns: Sequence[Turn]) -> tuple[str, list[Span]]:
        text = self._bos
        replies = []
        before = None
        for turn in turns:
            if turn.role == "system":
                text += f"System: {turn.content} "
            elif turn.role == "user":
                text += ("" if before in (None, "system") else " ") + f"User: {turn.content} Assistant:"
            else:
                replies.append((len(text), len(text) + 1 + len(turn.content) + len(self._eos)))
                text += f" {turn.content}{self._eos}"
            before = turn.role
        return text, replies

    def _conditioned(self, opened: str, opening: str) -> str:
        """What opens an answer comes where the closed conversation has one."""
        if not opening:
            return opened
        return opened.removesuffix(self.reply_shape.dropped) + self.reply_shape.lead + opening

    def _checked(self, condition: ConditionFormat | None) -> ConditionFormat:
        form = condition or _DIGITS
        spelled: list[str] = []
        if form.how.style != "digits":
            self.control.protect(" ".join([*form.how.words, form.how.phrase]), spelled)
        if spelled:
            raise BadInput(
                f"the words of the score spell {spelled[0]!r}, a control token of the model",
                code="control_token_in_text",
                hint="Write other score_words, or another score_phrase.",
            )
        unknown = next((token for token in form.how.tokens if not self.control.has(token)), None)
        if unknown is not None:
            raise BadInput(
                f"the policy is asked with {unknown}, a token that its tokenizer does not have",
                code="bad_score_tokens",
                hint="Restore the tokenizer files that the policy was saved with.",
            )
        return form

    def _protect(self, turns: Sequence[Turn], literals: list[str]) -> list[Turn]:
        def text(given: str) -> str:
            return self.control.protect(given, literals)

        return [Turn(turn.role, text(turn.content), mapped_texts(turn.more, text)) for turn in turns]


def _requesting(turns: Sequence[Turn], ending: str) -> Sequence[Turn]:
    """The turns with `ending` behind the last one of the user."""
    last = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=None)
    if not ending or last is None:
        return turns
    content = turns[last].content
    whole = turns[last]._replace(content=f"{content} {ending}" if content else ending)
    return [*turns[:last], whole, *turns[last + 1 :]]


def _messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    return [template_turn({"role": turn.role, "content": turn.content, **turn.more}) for turn in turns]
