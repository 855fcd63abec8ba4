"""Whether two models of the registry read the same token ids as the same text, as far as their files say."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy.orm import Session

from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import manifest_of
from steerboard.registry.tables import Model
from steerboard_contracts.conditions.score_words import is_score_token
from steerboard_contracts.errors import SteerboardError

_TOKENIZER, _CONFIG = "tokenizer.json", "tokenizer_config.json"
_LARGEST = 64 << 20


def tokenizer_fault(session: Session, store: ArtifactStore, model: Model, other: Model) -> str | None:
    """Why `other` cannot be given the tokens of `model`, and what to do. None where it can, and where the files do not
    tell: the run compares the tokenizers that it loads."""
    files, others = ({f["path"]: f for f in manifest_of(session, side).files} for side in (model, other))
    file, other_file = files.get(_TOKENIZER), others.get(_TOKENIZER)
    if file is None or other_file is None or file["sha256"] == other_file["sha256"]:
        return None
    ours, known = _vocabulary(_read(store, file)), _vocabulary(_read(store, other_file))
    if not ours or not known:
        return None
    config = _read(store, files[_CONFIG]) if _CONFIG in files else {}
    pad = config.get("pad_token")
    # Never read, and some models have none.
    ours.pop(pad.get("content") if isinstance(pad, dict) else pad, None)
    # Answers never have tokens of scores.
    compared = ((token, number) for token, number in ours.items() if not is_score_token(str(token)))
    wrong = next((token for token, number in compared if known.get(token) != number), None)
    if wrong is None:
        return None
    number = known.get(wrong)
    differs = "is unknown to it" if number is None else f"is number {number} there"
    return (
        f"`{other.name}` has another tokenizer than `{model.name}`: token {wrong!r}, number {ours[wrong]} of "
        f"`{model.name}`, {differs}. Take a model of the same family, such as the one that training starts from"
    )


def _read(store: ArtifactStore, file: dict[str, Any]) -> dict[str, Any]:
    """Empty where it cannot be read: the run will say why."""
    if file["size"] > _LARGEST:
        return {}
    try:
        document = orjson.loads(b"".join(store.read(file["sha256"])))
    except (SteerboardError, OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _vocabulary(tokenizer: dict[str, Any]) -> dict[Any, int]:
    """Token ids by token, as `tokenizer.json` has them: Unigram models list theirs in order, with scores."""
    model = tokenizer.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    vocabulary: dict[Any, int] = {}
    if isinstance(vocab, dict):
        vocabulary = dict(vocab)
    elif isinstance(vocab, list):
        vocabulary = {piece[0]: number for number, piece in enumerate(vocab) if isinstance(piece, list) and piece}
    added = tokenizer.get("added_tokens")
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict) and "content" in token and "id" in token:
            vocabulary[token["content"]] = token["id"]
    return vocabulary
