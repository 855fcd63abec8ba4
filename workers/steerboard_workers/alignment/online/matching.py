"""Regular expressions on texts that no one has read, in a process of their own.

A pattern may take exponential time or memory on an answer that a model happened to write, and nothing interrupts `re`
in this process. So a child matches, one text at a time, with little memory and an alarm that ends it.

As a program, this file is the child. It reads a JSON line [pattern, ignore_case, text] and answers it by one: null for
a text in which nothing is found, otherwise what was found last, its first group where it has one.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, Literal

from steerboard_contracts.errors import BadInput

# Limits for one text. Honest patterns take microseconds.
SECONDS = 5.0
MEMORY = 1 << 30
# The characters of an answer that an error shows.
SHOWN = 200


class Lost(Enum):
    TOO_SLOW = "too_slow"


TOO_SLOW: Final = Lost.TOO_SLOW
Found = str | None | Literal[Lost.TOO_SLOW]
"""What was found in a text, None where nothing was, or that no one knows."""


class Matcher:
    """One child, started when it is first asked; it ends with this process."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None

    def find(
        self, pattern: str, texts: Sequence[str], *, ignore_case: bool = False, most_lost: int = 0, needed: bool = True
    ) -> list[Found]:
        """The last match in each text; `TOO_SLOW` where the pattern takes more than a few seconds, or more memory than
        there is. Once that are more than `most_lost` of them, raises `BadInput` (`rule_too_slow`) with a text, or where
        it is not `needed`, asks about no further one."""
        matches: list[Found] = []
        lost = 0
        for text in texts:
            match = self._find(pattern, text, ignore_case) if lost <= most_lost else TOO_SLOW
            lost += match is TOO_SLOW
            if lost > most_lost and needed:
                raise self._too_slow(pattern, text, lost)
            matches.append(match)
        return matches

    def _find(self, pattern: str, text: str, ignore_case: bool) -> Found:
        command = [sys.executable, "-m", __name__, str(self._seconds)]
        child = self._child = self._child or subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps([pattern, ignore_case, text]).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            child.communicate()
            self._child = None
            return TOO_SLOW
        group: str | None = json.loads(line)
        return group

    def _too_slow(self, pattern: str, text: str, lost: int) -> BadInput:
        before = f"; it was the same with {lost - 1} before" if lost > 1 else ""
        return BadInput(
            f"the pattern {pattern!r} takes more than {self._seconds:g} seconds, or too much memory, on the answer "
            f"{text[:SHOWN]!r}{before}",
            code="rule_too_slow",
            hint="Write it without repetitions inside of repetitions, such as (a+)+. Or raise max_unscored.",
        )


@lru_cache(maxsize=64)
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def last_match(pattern: str, text: str, ignore_case: bool) -> str | None:
    last = None
    for each in _compiled(pattern, ignore_case).finditer(text):
        last = each
    if last is None:
        return None
    group = last.group(1) if last.re.groups else None
    return last.group() if group is None else group


def _serve(seconds: float) -> None:
    """The alarm ends this process where it is, inside of `re` too, and whether or not its parent is still there."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        pattern, ignore_case, text = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        print(json.dumps(last_match(pattern, text, ignore_case)), flush=True)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
