"""Control tokens of a tokenizer, and texts that only spell them.

What a user typed must never act as a control token. Before a template is applied, each such spelling is replaced by a
placeholder of private-use characters. Before the result is tokenised, the placeholder becomes the spelling again, and a
copy of the tokenizer that knows the template's control tokens by other names reads it as the characters that it is:
nothing else about the text changes, neither its spaces nor its borders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from steerboard_contracts.errors import BadInput

# A placeholder is OPEN, the literal's number, CLOSE; a control token in the copy is NAME_OPEN, its id, NAME_CLOSE.
_OPEN, _CLOSE, _NAME_OPEN, _NAME_CLOSE = "\ue0f0", "\ue0f1", "\ue0f2", "\ue0f3"
_PRIVATE = f"[{_OPEN}-{_NAME_CLOSE}]"


@dataclass(frozen=True)
class Written:
    """A rendered text. `literals[n]` belongs where `text` has placeholder n."""

    text: str
    literals: tuple[str, ...] = ()


class Encoded(NamedTuple):
    """Token ids, and (start, end) of each in the characters of `Written.text`."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class ControlTokens:
    """The control tokens of one tokenizer, which must be one of the `tokenizers` library."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        self._added = {token.content: int(number) for number, token in added.items() if token.content}
        special = {token for token in tokenizer.all_special_tokens if token}
        special |= {token.content for token in added.values() if token.special and token.content}
        self._spellings = sorted(special, key=lambda spelling: (-len(spelling), spelling))
        self._control = self._pattern(self._spellings)
        self._literal = re.compile("|".join([*map(re.escape, self._spellings), _PRIVATE]))
        known = sorted({*self._spellings, *self._added}, key=lambda spelling: (-len(spelling), spelling))
        self._any = self._pattern(known)

    @staticmethod
    def _pattern(spellings: Sequence[str]) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, spellings)) or r"(?!)")

    def add(self, spelling: str) -> None:
        """Treat a token as a control token though the tokenizer does not list it as a special one."""
        if spelling and spelling not in self._spellings:
            self._spellings = sorted([*self._spellings, spelling], key=lambda text: (-len(text), text))
            self._control = self._pattern(self._spellings)
            self._literal = re.compile("|".join([*map(re.escape, self._spellings), _PRIVATE]))

    def has(self, spelling: str) -> bool:
        return spelling in self._spellings

    def ids_where(self, chosen: Callable[[str], bool]) -> list[int]:
        """The numbers of the control tokens whose spelling is `chosen`, in their order."""
        return sorted(self._id_of(spelling) for spelling in self._spellings if chosen(spelling))

    def first_in(self, text: str) -> re.Match[str] | None:
        """The first added token in a text that a template wrote, control token or not."""
        return self._any.search(text)

    def protect(self, text: str, literals: list[str]) -> str:
        """`text` with placeholders for all that could be taken for a control token; they are added to `literals`.

        Equal texts get equal placeholders, since some templates compare messages by their text (Mistral's do)."""

        def put_aside(match: re.Match[str]) -> str:
            if match.group() not in literals:
                literals.append(match.group())
            return f"{_OPEN}{literals.index(match.group())}{_CLOSE}"

        return self._literal.sub(put_aside, text)

    def encode(self, texts: Sequence[Written]) -> list[Encoded]:
        """Raises `BadInput` (`control_token_in_text`) for a tokenizer whose model itself reads the spelling of a
        control token as that token."""
        named = [self._named(text) for text in texts]
        encodings = self._copy.tokenizer.encode_batch([text for text, _ in named], add_special_tokens=False)
        return [self._encoded(encoding, pieces) for encoding, (_, pieces) in zip(encodings, named, strict=True)]

    def _encoded(self, encoding: Any, pieces: Sequence[_Piece]) -> Encoded:
        # In the copy, a control token has the number of its name: its own number comes from a text that spells it.
        numbers, forgeable = self._copy.numbers, self._copy.forgeable
        forged = next((number for number in encoding.ids if number not in numbers and number in forgeable), None)
        if forged is not None:
            raise BadInput(
                f"a text spells {self._tokenizer.convert_ids_to_tokens(forged)}, which the tokenizer reads as a "
                "control token even where it is plain text",
                code="control_token_in_text",
                hint="Remove it from the data.",
            )
        ids = [numbers.get(number, number) for number in encoding.ids]
        return Encoded(ids, [(_back(start, pieces), _back(end, pieces)) for start, end in encoding.offsets])

    def _named(self, written: Written) -> tuple[str, list[_Piece]]:
        """The text for the copy, and the pieces of it that differ."""
        texts, pieces, at, length = [], [], 0, 0
        for match in re.finditer(rf"{_OPEN}(\d+){_CLOSE}|{self._control.pattern}", written.text):
            number = match.group(1)
            plain = written.text[at : match.start()]
            piece = written.literals[int(number)] if number is not None else _name(self._id_of(match.group()))
            length += len(plain)
            texts += [plain, piece]
            pieces.append(_Piece(match.start(), match.end(), length, length + len(piece)))
            length += len(piece)
            at = match.end()
        return "".join([*texts, written.text[at:]]), pieces

    def _id_of(self, spelling: str) -> int:
        return self._added.get(spelling) or int(self._tokenizer.convert_tokens_to_ids(spelling))

    @cached_property
    def _copy(self) -> _Copy:
        return _Copy.of(self._tokenizer, {spelling: self._id_of(spelling) for spelling in self._spellings})


class _Piece(NamedTuple):
    """(start, end) in the written text, and in the one that the copy reads."""

    start: int
    end: int
    there: int
    there_end: int


@dataclass(frozen=True)
class _Copy:
    """A tokenizer that knows control tokens by other names. `numbers`: ids of all added tokens by the copy's own."""

    tokenizer: Any
    numbers: dict[int | None, int]
    forgeable: frozenset[int]

    @classmethod
    def of(cls, tokenizer: Any, control: dict[str, int]) -> _Copy:
        from tokenizers import AddedToken, Tokenizer

        written = json.loads(tokenizer.backend_tokenizer.to_str())
        flags = {token["content"]: token for token in written["added_tokens"]}
        written["added_tokens"] = [token for token in written["added_tokens"] if token["content"] not in control]
        # A limit or padding of the folder's, and what it adds around a text, are not part of reading one.
        copy = Tokenizer.from_str(json.dumps({**written, "truncation": None, "padding": None, "post_processor": None}))
        kept = {token["content"]: token["id"] for token in written["added_tokens"]}
        numbers: dict[int | None, int] = {copy.token_to_id(spelling): number for spelling, number in kept.items()}
        renamed = []
        for spelling, number in control.items():
            sides = {side: flags.get(spelling, {}).get(side, False) for side in ("lstrip", "rstrip")}
            renamed.append(AddedToken(_name(number), normalized=False, **sides))
        # At once: each call builds the search for all added tokens again, and Gemma has more than 6,000.
        copy.add_special_tokens(renamed)
        numbers |= {copy.token_to_id(_name(number)): number for number in control.values()}
        return cls(copy, numbers, frozenset(control.values()) - {tokenizer.unk_token_id})


def _name(number: int) -> str:
    return f"{_NAME_OPEN}{number}{_NAME_CLOSE}"


def _back(place: int, pieces: Sequence[_Piece]) -> int:
    """A place of the copy's text in the written one; inside of a piece that differs, that piece's beginning."""
    shift = 0
    for piece in pieces:
        if place < piece.there:
            break
        if place < piece.there_end:
            return piece.start
        shift = piece.end - piece.there_end
    return place + shift
