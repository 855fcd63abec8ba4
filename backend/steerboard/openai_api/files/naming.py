"""File objects of OpenAI's API, and what they are for."""

from __future__ import annotations

from typing import Any

PURPOSE, RESULTS_PURPOSE = "fine-tune", "fine-tune-results"


def file_out(id_: str, name: str, purpose: str, size: int, created_at: int) -> dict[str, Any]:
    """`size` in bytes, `created_at` in seconds."""
    return {
        "id": id_,
        "object": "file",
        "bytes": size,
        "created_at": created_at,
        "expires_at": None,
        "filename": name,
        "purpose": purpose,
        "status": "processed",
        "status_details": None,
    }
