"""The texts of single tokens, for people who read what a model made of each."""

from __future__ import annotations

from typing import Any

from steerboard_workers.alignment.examples import Ids

# A character has at most four bytes, and a byte may be a token.
_BYTES = 4
_UNFINISHED = "\ufffd"


def token_texts(tokenizer: Any, ids: Ids) -> list[str]:
    """The text that each token adds. Where tokens are parts of a character, the last of them has it."""
    given, texts, start = [int(token) for token in ids], [], 0

    def text(part: list[int]) -> str:
        decoded: str = tokenizer.decode(part, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return decoded

    for end in range(1, len(given) + 1):
        # Behind the token before it: alone, some tokenizers take its leading space away.
        before = given[start - 1 : start] if start else []
        added = text(before + given[start:end]).removeprefix(text(before))
        if added.endswith(_UNFINISHED) and end < len(given) and end - start < _BYTES:
            texts.append("")
            continue
        texts.append(added)
        start = end
    return texts
