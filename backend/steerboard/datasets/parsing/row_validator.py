"""The fate of one record: kept as a valid sample, refused with a reason, or cleaned away by a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steerboard.datasets.parsing.arranged import Removed
from steerboard.datasets.parsing.cleaning import Cleaner, Rule
from steerboard.datasets.parsing.extras import encode_extra, storable_columns
from steerboard.datasets.parsing.mapping import Mapping
from steerboard.datasets.parsing.row_builder import Shaped, Shaper
from steerboard.datasets.rows.row_writer import canonical_json, sample_fields
from steerboard_contracts.errors import BadRow
from steerboard_contracts.samples import LabelledSample, PreferenceSample, Sample, SampleKind, validate_sample
from steerboard_files.records import Problem


@dataclass(slots=True)
class Kept:
    """A row to store. `canonical`: the bytes of `fields` that are hashed; `extra`: the other columns as JSON."""

    sample: Sample
    fields: dict[str, Any]
    canonical: bytes
    extra: str | None
    shaped: Shaped


class RowValidator:
    """The same rules for the import, its validation and its preview. Remembers rows to find duplicates."""

    def __init__(self, mapping: Mapping, *, texts_only: bool, clean: bool, min_margin: float | None) -> None:
        self._kind = mapping.kind
        self._shape = Shaper(mapping, texts_only)
        self._cleaner = Cleaner(mapping.kind, clean, min_margin)
        # Other columns of types that cannot be stored.
        self.not_kept: set[str] = set()

    @property
    def dropped(self) -> dict[Rule, int]:
        """Rows cleaned away so far, by rule."""
        return dict(self._cleaner.dropped)

    def __call__(self, number: int, record: dict[str, Any] | Problem | Removed) -> Kept | Problem | Rule:
        if isinstance(record, Removed):
            return self._cleaner.removed(record)
        shaped = record if isinstance(record, Problem) else self._shape(record)
        if isinstance(shaped, Problem):
            return shaped
        if rule := self._cleaner.before_validation(shaped):
            return rule
        extra = encode_extra(shaped.extra)
        if isinstance(extra, Problem):
            given, shaped.extra = shaped.extra or {}, storable_columns(shaped.extra)
            self.not_kept |= given.keys() - (shaped.extra or {}).keys()
            extra = encode_extra(shaped.extra)
        if isinstance(extra, Problem):
            return extra
        sample = _validated(self._kind, shaped.sample, number, shaped.diverging)
        if isinstance(sample, Problem):
            return sample
        fields = sample_fields(sample)
        canonical = canonical_json(fields)
        if rule := self._cleaner.after_validation(sample, _identity(sample, fields, canonical)):
            return rule
        return Kept(sample, fields, canonical, extra, shaped)


def _validated(kind: SampleKind, fields: dict[str, Any], number: int, diverging: bool) -> Sample | Problem:
    if diverging:
        return Problem("bad_row", "chosen and rejected diverge before their last turn")
    try:
        return validate_sample(kind, fields, number)
    except BadRow as error:
        reason = error.errors[0].message
        code = "non_finite_reward" if reason == "reward: is not a finite number" else "bad_row"
        return Problem(code, reason)


def _identity(sample: Sample, fields: dict[str, Any], canonical: bytes) -> bytes:
    """What makes two rows duplicates: everything but a preference's margin; a label counts with its reward."""
    if isinstance(sample, PreferenceSample) and sample.margin is not None:
        return canonical_json({name: value for name, value in fields.items() if name != "margin"})
    if isinstance(sample, LabelledSample):
        return canonical + repr(sample.reward).encode()
    return canonical
