"""The paths at which OpenAI's API is served."""

from __future__ import annotations

import re

OF_DEFAULT_PROJECT, OF_PROJECT = "/v1", "/p/{project}/v1"
_OURS = re.compile(r"(/p/[^/]+)?/v1(/.*)?", re.DOTALL)


def is_openai_path(path: str) -> bool:
    return _OURS.fullmatch(path) is not None
