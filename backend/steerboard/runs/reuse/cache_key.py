"""What decides the result of a run, as one hash: equal runs can share their outputs."""

from __future__ import annotations

import hashlib

import orjson
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.runs import inputs
from steerboard.runs.reuse.code_version import code_version
from steerboard.runs.tables import Run
from steerboard_contracts.run_kinds import any_kind_of

# Where and how often work is cut up or saved changes nothing in its result.
WITHOUT_EFFECT = frozenset({"shards", "checkpoint_every", "checkpoint_seconds"})
# `prompts_hash` identifies the prompts, so for whom they are answered changes nothing.
_OF_ANSWERS = frozenset({"evaluation", "entrant"})


def cache_key(session: Session, run: Run) -> str | None:
    """Hash of all that decides the result of `run`; None when that is not known here, or for a shard.

    All inputs of the run must be there. Raises `UnusableInput` otherwise.
    """
    if run.changes:
        return None  # its config is not what it trains with
    code = code_version(run.kind, run.method)
    kind = any_kind_of(run.kind, run.method)
    if code is None or kind is None or run.shard is not None:
        return None
    if any(run.config.get(field) is not None for field in kind.may_change):
        return None
    things = inputs.resolve(session, run)
    without_effect = WITHOUT_EFFECT | (_OF_ANSWERS if run.kind == "answer" else frozenset())
    document = {
        "kind": run.kind,
        "config": {name: value for name, value in run.config.items() if name not in without_effect},
        "inputs": {
            name: ["dataset", thing.kind, thing.content_hash]
            if isinstance(thing, Dataset)
            else ["model", thing.artifact_hash]
            for name, thing in things.items()
        },
        "code": code,
    }
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
