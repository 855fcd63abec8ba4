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

    With a format, the condition opens the last assistant turn; callers change it with
    `apply_chat_template(..., rm_score=2.5)`.
    """
    before, written = "", "''"
    if form is not None:
        before = _default(form)
        written = f"((' ' ~ {_text(form)}) if {_argument(form)} != '' else '')"
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
    """A model's own chat template with the condition opening the answer that is asked for: behind `lead`, and in place
    of `dropped`, which ends its generation prompt and which closed conversations do not have."""
    own, asked = without_condition(template), f"add_generation_prompt and {_argument(form)} != ''"
    written = f"{json.dumps(lead, ensure_ascii=False)} ~ {_text(form)}" if lead else _text(form)
    if not dropped:
        ending = f"{{% if {asked} %}}{{{{ {written} }}}}{{% endif %}}"
        return _default(form) + own + _OPEN + ending + _CLOSE
    before = f"{_OPEN}{{% set opened %}}{_CLOSE}"
    shorter = f"{{{{ opened[:-{len(dropped)}] ~ {written} }}}}"
    after = f"{{% endset %}}{{% if {asked} %}}{shorter}{{% else %}}{{{{ opened }}}}{{% endif %}}"
    return _default(form) + before + own + _OPEN + after + _CLOSE


def without_condition(template: str) -> str:
    """Undo `chat_template_with_condition`."""
    return re.sub(re.escape(_OPEN) + ".*?" + re.escape(_CLOSE), "", template, flags=re.DOTALL)


def _argument(form: ConditionFormat) -> str:
    return "rm_score" if form.only_score else "condition"


def _text(form: ConditionFormat) -> str:
    """Jinja."""
    return f"'{SCORE_MARKER} ' ~ '%.2f' | format(rm_score | float)" if form.only_score else "condition"


def _default(form: ConditionFormat) -> str:
    name, text = _argument(form), form.text(form.default)
    absent = f"{{% if {name} is not defined or {name} is none %}}"
    return f"{_OPEN}{absent}{{% set {name} = '{text}' %}}{{% endif %}}{_CLOSE}"
