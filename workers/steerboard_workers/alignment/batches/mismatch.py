"""Prompts with answers to other prompts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from steerboard_workers.alignment.examples import Example


def partners(prompts: Sequence[Hashable]) -> list[int] | None:
    """A partner for each place: one with another prompt, drawn once and for all: a function of `prompts` alone.

    A permutation where no prompt has more than half of the places; otherwise those of the frequent prompt share the
    others. None: all prompts are equal.
    """
    n = len(prompts)
    blocks: dict[Hashable, list[int]] = {}
    for place in np.random.Generator(np.random.Philox(key=[n, 0])).permutation(n).tolist():
        blocks.setdefault(prompts[place], []).append(place)
    if len(blocks) < 2:
        return None
    # Places of a prompt are adjacent, so a step as long as the longest block leads out of any block.
    ordered = sorted(blocks.values(), key=len, reverse=True)
    circle = [place for block in ordered for place in block]
    longest = len(ordered[0])
    partner_of = [0] * n
    for at, place in enumerate(circle):
        if 2 * longest <= n:
            partner_of[place] = circle[(at + longest) % n]
        elif at < longest:
            partner_of[place] = circle[longest + at % (n - longest)]
        else:
            partner_of[place] = circle[at - longest]
    return partner_of


def mismatched(example: Example, other: Example, max_length: int) -> Example:
    """The prompt of `example` with the response of `other`, cut from the right to `max_length` tokens."""
    room = max_length - len(example.prompt)
    return replace(example, responses=(other.responses[0][:room],), companion=None)
