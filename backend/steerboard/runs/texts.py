"""Texts that models and stages made up, as Postgres can hold them."""

from __future__ import annotations


def storable_text(text: str) -> str:
    """Without what Postgres cannot hold: NUL characters, lone surrogates."""
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()
