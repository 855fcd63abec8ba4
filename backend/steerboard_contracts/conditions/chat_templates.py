"""Chat templates that write a condition, so that an exported policy is asked the same way by other programs.

A policy of scores takes `rm_score`, a number; one of other attributes `condition`, a text such as
`helpfulness:4,verbosity:2`. The empty text asks for nothing at all.
"""

from __future__ import annotations

import json
import re

from steerboard_contracts.conditions.format import SCORE_MARKER, ConditionFormat

# Comments mark what `without_condition` takes out again; folders of former releases have the same.
_OPEN, _CLOSE = "{#- rm_score -#}", "{#- /rm_score -#}"


def plain_chat_template(form: ConditionFormat | None) -> str:
    """A Jinja chat template equal to the plain template, token for token.

    With a format, the condition opens the last assistant turn or ends the last user turn; callers change it with
    `apply_chat_template(..., rm_score=2.5)`.
    """
    before, written = "", "''"
    if form is not None:
        before = _default(form)
        if form.how.place != "request":
            written = f"((' ' ~ {_opening(form)}) if {_argument(form)} != '' else '')"
        if form.how.place != "answer":
            before += _OPEN + _requested(form, f"{_argument(form)} != ''") + _CLOSE
    return (
        before + "{{ bos_token if bos_token else '' }}"
        "{% for m in messages %}"
        "{% if m.role == 'system' %}{{ 'System: ' + m.content + ' ' }}"
        "{% elif m.role == 'user' %}{{ ('' if loop.first or messages[loop.index0-1].role == 'system' else ' ')"
        " + 'User: ' + m.content + ' Assistant:' }}"
        "{% else %}{{ (" + written + " if loop.last else '') + ' ' + m.content + eos_token }}{% endif %}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ " + written + " }}{% endif %}"
    )


def chat_template_with_condition(template: str, form: ConditionFormat, lead: str = "", dropped: str = "") -> str:
    """A model's own chat template with the condition where `form` places it. One that opens the answer that is asked
    for comes behind `lead`, and in place of `dropped`, which ends the template's generation prompt and which closed
    conversations do not have."""
    own, test = without_condition(template), f"add_generation_prompt and {_argument(form)} != ''"
    beginning = _default(form)
    if form.how.place != "answer":
        beginning += _OPEN + _requested(form, test) + _CLOSE
    if form.how.place == "request":
        return beginning + own
    written = f"{json.dumps(lead, ensure_ascii=False)} ~ {_opening(form)}" if lead else _opening(form)
    if not dropped:
        ending = f"{{% if {test} %}}{{{{ {written} }}}}{{% endif %}}"
        return beginning + own + _OPEN + ending + _CLOSE
    before = f"{_OPEN}{{% set opened %}}{_CLOSE}"
    shorter = f"{{{{ opened[:-{len(dropped)}] ~ {written} }}}}"
    after = f"{{% endset %}}{{% if {test} %}}{shorter}{{% else %}}{{{{ opened }}}}{{% endif %}}"
    return beginning + before + own + _OPEN + after + _CLOSE


def without_condition(template: str) -> str:
    """Undo `chat_template_with_condition`."""
    return re.sub(re.escape(_OPEN) + ".*?" + re.escape(_CLOSE), "", template, flags=re.DOTALL)


def _argument(form: ConditionFormat) -> str:
    return "rm_score" if form.only_score else "condition"


def _opening(form: ConditionFormat) -> str:
    """The Jinja expression of `ConditionFormat.opening`."""
    return _digits(form) if form.how.style == "digits" else f"({_sign(form)}) ~ ':'"


def _request(form: ConditionFormat) -> str:
    """The Jinja expression of `ConditionFormat.request`."""
    if form.how.style == "digits":
        return _digits(form)
    before, _, after = form.how.sentence.partition("{}")
    return f"{_literal(before)} ~ ({_sign(form)}) ~ {_literal(after)}"


def _digits(form: ConditionFormat) -> str:
    return f"'{SCORE_MARKER} ' ~ '%.2f' | format(rm_score | float)" if form.only_score else "condition"


def _sign(form: ConditionFormat) -> str:
    """The word, or its token."""
    signs = form.how.signs
    below = zip(signs[:-1], form.word_borders, strict=True)
    return "".join(f"{_literal(sign)} if rm_score | float < {border!r} else " for sign, border in below) + _literal(
        signs[-1]
    )


def _requested(form: ConditionFormat, test: str) -> str:
    """Jinja that puts the condition at the end of the last user turn, where `test` is true."""
    text = f"({_request(form)})"
    string = f"(m.content ~ ' ' if m.content else '') ~ {text}"
    # Servers may give a turn as parts.
    content = f"({string}) if m.content is string else m.content + [{{'type': 'text', 'text': {text}}}]"
    return (
        f"{{% if {test} %}}{{% set steered = namespace(last=-1, turns=[]) %}}"
        "{% for m in messages %}{% if m.role == 'user' %}{% set steered.last = loop.index0 %}{% endif %}{% endfor %}"
        "{% for m in messages %}{% set steered.turns = steered.turns + "
        f"[{{'role': m.role, 'content': {content}}} if loop.index0 == steered.last else m] %}}{{% endfor %}}"
        "{% set messages = steered.turns %}{% endif %}"
    )


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _default(form: ConditionFormat) -> str:
    name, text = _argument(form), form.text(form.default)
    absent = f"{{% if {name} is not defined or {name} is none %}}"
    return f"{_OPEN}{absent}{{% set {name} = '{text}' %}}{{% endif %}}{_CLOSE}"
