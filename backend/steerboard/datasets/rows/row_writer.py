"""Validated samples -> rows of the table, by COPY, while their hash, split and figures are worked out."""

from __future__ import annotations

import hashlib
import uuid
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from steerboard.datasets.rows.row_statistics import RowFigures, spread
from steerboard.platform.row_copy import RowCopy, copy_into
from steerboard.platform.storage.disk import database_disk
from steerboard_contracts.prompt_split import is_held_out, prompt_hash
from steerboard_contracts.samples import ANSWERS, GROUP_FIELDS, LabelledSample, Sample
from steerboard_contracts.tools import TOOL_FIELDS, stored_turn
from steerboard_contracts.turns import AnswerMessage, SampleMessage

# Among the fields of a dataset: some labels of steps are fractions, so an export has numbers.
SOFT_LABELS = "soft_labels"
# A labelled row's reward is a row of `rewards`, not part of its sample.
_ELSEWHERE = frozenset({"reward"})


def sample_fields(sample: Sample) -> dict[str, Any]:
    """The sample as stored: the kind's fields in their order, without absent ones and without the reward."""
    fields: dict[str, Any] = {"prompt": [_stored(message) for message in sample.prompt]}
    for name, value in sample.__dict__.items():
        if value is not None and name != "prompt" and name not in _ELSEWHERE:
            fields[name] = stored_turn(value.model_dump()) if isinstance(value, AnswerMessage) else value
    return fields


def _stored(message: SampleMessage) -> dict[str, Any]:
    if message.role != "tool" and message.tool_calls is None and message.tools is None:
        return {"role": message.role, "content": message.content}
    return stored_turn(message.model_dump())


def calls_field(name: str) -> str:
    """How a dataset's origin names the calls of an answer among the fields of its samples."""
    return f"{name}.tool_calls"


def canonical_json(fields: dict[str, Any]) -> bytes:
    """The bytes that are hashed: compact UTF-8 JSON in field order."""
    return orjson.dumps(fields)


class ContentHash:
    """SHA-256 over canonical rows in order; of labelled rows also over their rewards. Extras do not count:
    training never sees them."""

    def __init__(self) -> None:
        self._rows = hashlib.sha256()

    def add(self, canonical: bytes) -> None:
        self._rows.update(canonical)
        self._rows.update(b"\n")

    def hexdigest(self, rewards: array[float] | None = None) -> str:
        if rewards is None:
            return self._rows.hexdigest()
        return hashlib.sha256(self._rows.digest() + rewards.tobytes()).hexdigest()


class RowWriter:
    """Feeds one COPY. Row numbers count from 0 in the order of `add`. With a held-out fraction of 0 every row is for
    training, and the content hash differs: training on such rows is not training on the same rows split."""

    def __init__(self, copy: RowCopy, dataset_id: uuid.UUID, salt: str, held_out_fraction: float) -> None:
        self._copy = copy
        self._dataset_id = str(dataset_id)
        self._salt = salt
        self._fraction = held_out_fraction
        self._hash = ContentHash()
        self.rows = 0
        self.held_out_rows = 0
        self.fields: set[str] = set()
        self.figures = RowFigures()

    def add(self, sample: Sample, fields: dict[str, Any], canonical: bytes, extra: str | None) -> None:
        hash64 = prompt_hash(sample.prompt, self._salt)
        held_out = is_held_out(hash64, self._fraction)
        self._copy.write_row((self._dataset_id, self.rows, hash64, "t" if held_out else "f", canonical.decode(), extra))
        self._hash.add(canonical)
        self.rows += 1
        self.held_out_rows += held_out
        self.fields.update(fields)
        # So that an export knows which columns its messages have.
        self.fields.update(name for turn in fields["prompt"] if len(turn) > 2 for name in TOOL_FIELDS if name in turn)
        if any(isinstance(label, float) for label in fields.get("labels", ())):
            self.fields.add(SOFT_LABELS)
        self.fields.update(calls_field(name) for name in ANSWERS if isinstance(fields.get(name), dict))
        # Equal answers of one group are repeated rows here; cleaning keeps them. A label counts with its reward.
        identity = canonical
        if "group" in fields:
            identity = canonical_json({name: fields[name] for name in fields if name not in GROUP_FIELDS})
        if isinstance(sample, LabelledSample):
            identity += repr(sample.reward).encode()
        self.figures.add(fields, hash64, held_out, identity)

    def content_hash(self, rewards: array[float] | None = None) -> str:
        if self._fraction == 0:
            self._hash.add(b"all rows for training")
        return self._hash.hexdigest(rewards)

    def about(self) -> dict[str, Any]:
        """What goes into the dataset's origin: which fields its samples have, and how long they are."""
        return {"fields": sorted(self.fields), "figures": self._figures()}

    def _figures(self) -> dict[str, Any]:
        lengths = self.figures.lengths
        answers = array("I")
        for field in (*ANSWERS, "completions"):
            answers.extend(lengths.get(field, ()))
        return {"prompt_characters": spread(lengths.get("prompt")), "response_characters": spread(answers)}


@contextmanager
def copy_in(session: Session, statement: str) -> Iterator[RowCopy]:
    """A COPY ... FROM STDIN inside the session's transaction. Raises `NoSpaceLeft`."""
    with copy_into(raw_connection(session), statement, database_disk()) as copy:
        yield copy


def give_back_space(engine: Engine) -> None:
    """Gives back the space of rows that were rolled back: PostgreSQL frees their part of the file only on a vacuum."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM samples"))


def raw_connection(session: Session) -> psycopg.Connection[Any]:
    """The psycopg connection of the session's transaction, for COPY and server-side cursors."""
    session.flush()
    connection = session.connection().connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    return connection


COPY_SAMPLES = "COPY samples (dataset_id, row, prompt_hash, held_out, sample, extra) FROM STDIN"
COPY_REWARDS = "COPY rewards (dataset_id, reward_source_id, row, value) FROM STDIN"
