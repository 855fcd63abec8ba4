"""What Ollama loads a GGUF file by: https://docs.ollama.com/modelfile. Its templates are Go's, and take no score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_SAID, _ANSWERED, _RULES = "«the user's words»", "«the model's answer»", "«the system prompt»"
_QUOTES = '"""'
_GO_MARKS = ("{{", "}}", _QUOTES)


@dataclass(frozen=True)
class Turns:
    """A chat template whose turns are written each by itself: `first` opens a chat, `reply` follows each request,
    `last` the last one, such as with a score, and `then` comes between an answer and the next request. `rules`: what
    is around a system prompt, with which a chat then opens; None where the template takes none."""

    first: str
    reply: str
    last: str
    then: str
    rules: tuple[str, str] | None = None

    def go(self) -> str | None:
        """The template in Go's language; None where Go would read a part as a command."""
        parts = (self.first, self.reply, self.last, self.then, *(self.rules or ()))
        if any(mark in part for part in parts for mark in _GO_MARKS):
            return None
        system, user = "", '{{ if eq .Role "user" }}'
        if self.rules is not None:
            before, behind = self.rules
            system, user = f'{{{{ if eq .Role "system" }}}}{before}{{{{ .Content }}}}{behind}', "{{ else " + user[3:]
        opening = (
            f'{{{{ if eq $before "" }}}}{self.first}{{{{ else if eq $before "assistant" }}}}{self.then}{{{{ end }}}}'
        )
        reply = self.reply
        if self.last != reply:
            is_last = "{{ if eq (len (slice $.Messages $i)) 1 }}"
            reply = f"{is_last}{self.last}{{{{ else }}}}{reply}{{{{ end }}}}"
        return (
            '{{- $before := "" }}{{ range $i, $_ := .Messages }}'
            f"{system}{user}{opening}{{{{ .Content }}}}{reply}"
            "{{ else }}{{ .Content }}{{ end }}{{ $before = .Role }}{{ end }}"
        )

    def rendered(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The text of messages that end with a request, as Go makes it."""
        text, before = "", ""
        for place, message in enumerate(messages, start=1):
            content = message["content"]
            if message["role"] == "system":
                opening, behind = self.rules or ("", "")
                text += opening + content + behind
            elif message["role"] == "user":
                opening = {"": self.first, "assistant": self.then}.get(before, "")
                text += opening + content + (self.last if place == len(messages) else self.reply)
            else:
                text += content
            before = message["role"]
        return text


def turns_of(tokenizer: Any, arguments: Mapping[str, str], drop: str = "") -> Turns | None:
    """`drop`: a text that llama.cpp puts before every prompt by itself. None where turns are written otherwise, such as
    with the system prompt at the end."""
    once = _rendered(tokenizer, arguments, _chat(_SAID), drop)
    twice = _rendered(tokenizer, arguments, _chat(_SAID, _ANSWERED, _SAID), drop)
    if once is None or twice is None or once.count(_SAID) != 1 or twice.count(_ANSWERED) != 1:
        return None
    first, last = once.split(_SAID)
    begun, rest = twice.split(_ANSWERED)
    if begun.count(_SAID) != 1 or rest.count(_SAID) != 1:
        return None
    plain = Turns(first, begun.split(_SAID)[1], last, rest.split(_SAID)[0])
    if not _holds(tokenizer, arguments, plain, [], drop):
        return None
    system = {"role": "system", "content": _RULES}
    ruled = _rendered(tokenizer, arguments, [system, *_chat(_SAID)], drop)
    if ruled is None or ruled.count(_RULES) != 1 or ruled.count(_SAID) != 1 or ruled.find(_RULES) > ruled.find(_SAID):
        return plain
    before, behind = ruled.split(_SAID)[0].split(_RULES)
    whole = replace(plain, rules=(before, behind))
    return whole if _holds(tokenizer, arguments, whole, [system], drop) else plain


def modelfile(file: str, turns: Turns | None, window: int, ends: Sequence[str], arguments: Mapping[str, str]) -> str:
    """`arguments`: of the chat template, such as the score that every chat asks for."""
    lines = [f"FROM ./{file}", f"PARAMETER num_ctx {window}"]
    lines += [f'PARAMETER stop "{_escaped(end)}"' for end in ends]
    template = turns.go() if turns is not None else None
    if template is None:
        lines.append("# Go's templates cannot say this chat template: write prompts yourself, and send them raw.")
    else:
        if arguments:
            asked = ", ".join(f"{name} {value}" for name, value in arguments.items())
            lines.append(f"# Every chat asks for {asked}. For another, write the prompt yourself and send it raw.")
        lines.append(f"TEMPLATE {_QUOTES}{template}{_QUOTES}")
    return "\n".join(lines) + "\n"


def _holds(
    tokenizer: Any, arguments: Mapping[str, str], turns: Turns, begin: Sequence[Mapping[str, str]], drop: str
) -> bool:
    chat = [*begin, *_chat(_SAID, _ANSWERED, "What else?", "Nothing else.", _SAID)]
    return _rendered(tokenizer, arguments, chat, drop) == turns.rendered(chat)


def _chat(*turns: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[place % 2], "content": turn} for place, turn in enumerate(turns)]


def _rendered(
    tokenizer: Any, arguments: Mapping[str, str], messages: Sequence[Mapping[str, str]], drop: str
) -> str | None:
    try:
        text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True, **arguments)
    except Exception:  # a template may refuse whatever it likes, by an error of its own
        return None
    return str(text).removeprefix(drop)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
