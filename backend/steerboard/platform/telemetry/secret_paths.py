"""Addresses that are secrets: a link to sign in, or to a shared page. Anyone who reads the code in one can use it."""

from __future__ import annotations

import re

# Also where no route matches, as with a slash at the end or in capitals: what comes first may be a code that works.
_CODE = re.compile(r"\A(/+(?:sign-in|shared)/+).+", re.IGNORECASE | re.DOTALL)


def without_code(path: str) -> str:
    """The path as logs and traces may have it: `/shared/{code}`, and any other path as it is."""
    return _CODE.sub(r"\1{code}", path)
