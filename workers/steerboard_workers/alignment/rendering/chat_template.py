"""The chat template of a tokenizer, which is code that others have written: whatever it raises is a fault of the data
or of the model, never a crash of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from functools import cached_property
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template

from steerboard_contracts.conditions.format import template_arguments
from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.limits import computing_at_most
from steerboard_workers.alignment.rendering.day import pinned_day

# Seconds of the processor for one conversation; templates take less than a millisecond.
TEMPLATE_SECONDS = 10.0
_MARKS = re.compile(r"\{%-?\s*generation\s*-?%\}")
# What `strftime` may be asked for by a template: each alone, so that a macro can replace them one after the other.
_DATE_CODES = "aAbBdHIjmMpSUwWyYZ"

Messages = Sequence[dict[str, Any]]
Span = tuple[int, int]


class ChatTemplate:
    """The chat template of one tokenizer. A template that writes today's date gets the day of `pin_day` for it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def _text(self) -> str:
        check_default(self._tokenizer)
        try:
            text: str = self._tokenizer.get_chat_template()
        except Exception as error:
            raise _fault(error) from error
        day = pinned_day()
        return pinned(text, day) if day is not None else text

    @property
    def day(self) -> date | None:
        """What it writes as today's date; None for one that writes no date, or the real one."""
        return pinned_day() if "strftime_now" in self._text else None

    @property
    def has_marks(self) -> bool:
        """Whether it marks what an assistant writes (`{% generation %}`)."""
        return _MARKS.search(self._text) is not None

    def write(self, messages: Messages, *, answering: bool) -> str:
        """The conversation as text. `answering`: with the generation prompt. The first message holds the `tools` that
        the template is given, and calls have their arguments as objects.

        Raises `BadInput` (`bad_chat_template`) when the template fails, and (`template_timed_out`) when it does not
        come to an end.
        """
        return self._render(messages, answering, marks=False)[0]

    def marks(self, messages: Messages) -> list[Span]:
        """(start, end) in the text of the closed conversation of all that the template marks."""
        return self._render(messages, False, marks=True)[1]

    def _render(self, messages: Messages, answering: bool, *, marks: bool) -> tuple[str, list[Span]]:
        template, special = self._text, self._tokenizer.special_tokens_map
        tools = messages[0].get("tools") if messages else None
        given = [{name: value for name, value in message.items() if name != "tools"} for message in messages]
        try:
            with computing_at_most(TEMPLATE_SECONDS, _endless):
                # The folder's own template may open the answer with a default score; here the caller decides.
                arguments = {**special, **template_arguments("")}
                texts, spans = render_jinja_template(
                    [given],
                    tools=tools,
                    chat_template=template,
                    add_generation_prompt=answering,
                    return_assistant_tokens_mask=marks,
                    **arguments,
                )
        except BadInput:
            raise
        except Exception as error:
            raise _fault(error) from error
        return texts[0], [(start, end) for start, end in spans[0]] if marks else []


def pinned(template: str, day: date) -> str:
    """The template with a `strftime_now` that is always `day`."""
    if "strftime_now" not in template:
        return template
    moment = datetime.combine(day, time(), UTC)
    written = "format"
    for code in _DATE_CODES:
        for asked in (f"%-{code}", f"%{code}"):
            written += f" | replace('{asked}', '{moment.strftime(asked)}')"
    return f"{{%- macro strftime_now(format) -%}}{{{{ {written} }}}}{{%- endmacro -%}}{template}"


def _fault(error: Exception) -> BadInput:
    return BadInput(
        f"the model's chat template fails: {str(error)[:300] or type(error).__name__}",
        code="bad_chat_template",
        hint="Change the conversations so that the template takes them, correct the template in the model's tokenizer, "
        "or use `template: plain`.",
    )


def check_default(tokenizer: Any) -> None:
    """Raises `BadInput` (`bad_chat_template`) for templates by name, none of which is for plain conversations."""
    named = tokenizer.chat_template
    if not isinstance(named, dict) or not named or "default" in named:
        return
    raise BadInput(
        f"the model has chat templates by name ({', '.join(sorted(named))[:300]}), and none is the default one",
        code="bad_chat_template",
        hint="Save the template for conversations as chat_template.jinja in the model's folder, or as `default` in "
        "tokenizer_config.json; or remove them all, for the plain template.",
    )


def _endless() -> BadInput:
    return BadInput(
        f"the model's chat template had not written one conversation after {TEMPLATE_SECONDS:g} seconds of computing",
        code="template_timed_out",
        hint="Look for an endless loop in the chat template of the model's tokenizer.",
    )
