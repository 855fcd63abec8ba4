"""Conversations as text, in the paper's plain template or in the tokenizer's own chat template.

    plain   {bos}[System: {s} ]User: {u} Assistant:[ <rm_score> 5.00] {response}{eos}
    chat    the tokenizer's template; the condition opens the assistant's message

What a user typed must never act as a special token. Texts that contain the spelling of one come out in pieces,
and those pieces are tokenised as plain characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from jinja2 import TemplateError

from steerboard_contracts.conditions.format import condition_prompt, template_arguments
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import TemplateName
from steerboard_contracts.samples import Message
from steerboard_workers.alignment.limits import computing_at_most

# Of the processor, for one conversation; templates take less than a millisecond.
TEMPLATE_SECONDS = 10.0
# Stands for a special token's spelling inside user text while the template is applied. Private-use characters.
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"


class Turn(NamedTuple):
    role: str
    content: str


Prompt = Sequence[Message | dict[str, str]]


def turns_of(prompt: Prompt) -> list[Turn]:
    return [Turn(m["role"], m["content"]) if isinstance(m, dict) else Turn(m.role, m.content) for m in prompt]


@dataclass(frozen=True)
class PromptText:
    """`text` with the assistant marker and reward prompt; `replies` are the (start, end) characters of earlier
    assistant turns with their end tokens; `literals` replace the placeholders in `text`; `tail` is how many
    characters at the end (marker and reward prompt) truncation must keep."""

    text: str
    tail: int
    replies: tuple[tuple[int, int], ...] = ()
    literals: tuple[str, ...] = ()


class Template:
    """Renders prompts for one tokenizer. `separator` comes between the prompt and a response."""

    def __init__(self, tokenizer: Any, name: TemplateName) -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._bos: str = tokenizer.bos_token or ""
        self._eos: str = tokenizer.eos_token
        spellings = special_spellings(tokenizer)
        self._special = re.compile("|".join(re.escape(s) for s in spellings)) if spellings else None

    def separator(self, score_text: str | None) -> str:
        return " " if self.name == "plain" or score_text else ""

    def is_literal(self, text: str) -> bool:
        """Whether a text holds the spelling of a special token."""
        return self._special is not None and self._special.search(text) is not None

    def prompt(self, prompt: Prompt, score_text: str | None) -> PromptText:
        turns, literals = self._protect(turns_of(prompt))
        rendered = self._plain(turns, score_text) if self.name == "plain" else self._chat(turns, score_text)
        return replace(rendered, literals=tuple(literals))

    def _plain(self, turns: list[Turn], score_text: str | None) -> PromptText:
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
        ending = condition_prompt(score_text) if score_text else ""
        return PromptText(text + ending, tail=len(" Assistant:" + ending), replies=tuple(replies))

    def _chat(self, turns: list[Turn], score_text: str | None) -> PromptText:
        messages = [turn._asdict() for turn in turns]
        opened = self._apply(messages, add_generation_prompt=True)
        closed = self._apply(messages, add_generation_prompt=False)
        ending = condition_prompt(score_text).removeprefix(" ") if score_text else ""
        marker = len(opened) - len(closed) if opened.startswith(closed) else 0
        replies = []
        position = 0
        for turn in turns:
            content = turn.content.strip()  # many templates trim
            at = opened.find(content, position)
            if at >= 0:
                position = at + len(content)
                if turn.role == "assistant":
                    replies.append((at, position + len(self._turn_end)))
        return PromptText(opened + ending, tail=marker + len(ending), replies=tuple(replies))

    def _apply(self, messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
        """By the model's own template. Raises `BadInput` when that fails, or does not come to an end."""
        try:
            with computing_at_most(TEMPLATE_SECONDS, _endless):
                # The folder's own template may open the answer with a default score; here the caller decides.
                text: str = self._tokenizer.apply_chat_template(
                    messages, add_generation_prompt=add_generation_prompt, tokenize=False, **template_arguments("")
                )
        except TemplateError as error:
            raise BadInput(
                f"the model's chat template fails: {str(error)[:300]}",
                code="bad_chat_template",
                hint="Correct the template in the model's tokenizer, or use `template: plain`.",
            ) from error
        return text

    @cached_property
    def end_token(self) -> str:
        """The token that closes an assistant turn: the tokenizer's eos, or what its chat template uses instead."""
        return self._eos if self.name == "plain" else (self._turn_end or self._eos)

    @cached_property
    def _turn_end(self) -> str:
        """What a chat template writes right after an assistant message, when that is a special token."""
        probe = "steerboard probe"
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": probe}]
        text = self._apply(messages, add_generation_prompt=False)
        after = text.partition(probe)[2]
        found = self._special.match(after) if self._special else None
        return found.group() if found else ""

    def _protect(self, turns: list[Turn]) -> tuple[list[Turn], list[str]]:
        literals: list[str] = []
        if self._special is None or not any(self.is_literal(turn.content) for turn in turns):
            return turns, literals

        def put_aside(match: re.Match[str]) -> str:
            literals.append(match.group())
            return f"{_OPEN}{len(literals) - 1}{_CLOSE}"

        return [Turn(turn.role, self._special.sub(put_aside, turn.content)) for turn in turns], literals


def _endless() -> BadInput:
    return BadInput(
        f"the model's chat template had not written one conversation after {TEMPLATE_SECONDS:g} seconds of computing",
        code="template_timed_out",
        hint="Look for an endless loop in the chat template of the model's tokenizer.",
    )


def split_literals(text: str) -> list[tuple[str, int | None]]:
    """Pieces of a rendered text: (text, None), or ("", i) where literal i belongs."""
    pieces = re.split(f"{_OPEN}(\\d+){_CLOSE}", text)
    return [(p, None) if i % 2 == 0 else ("", int(p)) for i, p in enumerate(pieces) if i % 2 or p]


def special_spellings(tokenizer: Any) -> list[str]:
    """Every text that the tokenizer reads as a control token, longest first."""
    spellings = {t for t in tokenizer.all_special_tokens if t}
    spellings |= {t.content for t in tokenizer.added_tokens_decoder.values() if t.special and t.content}
    return sorted(spellings, key=lambda s: (-len(s), s))
