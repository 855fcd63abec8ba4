"""The places at which the steps of an answer end in its tokens. Training and scoring find them by the same rule."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.examples import Ids
from steerboard_workers.alignment.token_texts import token_texts

_UNFINISHED = "\ufffd"


class StepEnds:
    """Finds the places at which a process reward model is read, for one tokenizer and separator.

    Steps are what is between separators, without what is blank. Each but the last ends with the last token that has
    nothing of the next one, usually the separator's; the last ends with the sequence, where reward models are read.
    """

    def __init__(self, tokenizer: Any, stop_ids: Sequence[int], separator: str) -> None:
        self.separator = separator
        self._tokenizer = tokenizer
        self._stops = frozenset(stop_ids)
        self._texts: dict[int, str] = {}
        # Behind another token: alone, some tokenizers take a token's leading space away.
        self._anchor = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        self._before = len(self._decoded(self._anchor))

    def of(self, response: Sequence[int] | Ids, lead: int = 0) -> Ids:
        """(steps,) places in the tokens of a response, which may end with an end token and what its template writes
        behind it; the last place is that of its last token. `lead`: how many of its tokens belong to the prompt."""
        ids = [int(token) for token in response]
        end = next((at for at in range(lead, len(ids)) if ids[at] in self._stops), len(ids))
        texts = self._token_texts(ids[lead:end])
        ends = list(accumulate(map(len, texts)))
        places: list[int] = []
        for start, following in step_bounds("".join(texts), self.separator):
            if following is None:
                break
            at = bisect_left(ends, following)
            if at == len(ends) or ends[at] > following:
                # A token without a text of its own begins a character of the next one.
                at = bisect_left(ends, ends[at - 1]) if at else -1
            # A step of less than a token has no place of its own.
            if at >= 0 and ends[at] > start and (not places or lead + at > places[-1]):
                places.append(lead + at)
        return np.array([*places, len(ids) - 1], dtype=np.int32)

    def check(self) -> None:
        """Raises `BadInput` (`bad_config`) for a separator that the tokenizer does not keep as it is."""
        ids = self._tokenizer(f"a{self.separator}a", add_special_tokens=False)["input_ids"]
        if len(step_bounds("".join(self._token_texts(ids)), self.separator)) != 2:
            raise BadInput(
                f"the model's tokenizer does not keep the separator {self.separator!r}, so no step would end there",
                code="bad_config",
                hint="Choose a separator that it has tokens for, such as a line break.",
            )

    def _token_texts(self, ids: list[int]) -> list[str]:
        texts = [self._text(token) for token in ids]
        if any(_UNFINISHED in text for text in texts):
            return token_texts(self._tokenizer, np.array(ids, dtype=np.int32))
        return texts

    def _text(self, token: int) -> str:
        if token not in self._texts:
            self._texts[token] = self._decoded([*self._anchor, token])[self._before :]
        return self._texts[token]

    def _decoded(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text


def step_bounds(text: str, separator: str) -> list[tuple[int, int | None]]:
    """(where it begins, where the next one begins) of each step of a text, in characters; None for the last one."""
    starts, at = [], 0
    for piece in text.split(separator):
        if piece.strip():
            starts.append(at)
        at += len(piece) + len(separator)
    return list(zip(starts, [*starts[1:], None], strict=True)) if starts else []
