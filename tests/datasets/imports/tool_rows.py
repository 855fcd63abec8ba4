"""Turns of a conversation with one tool, as files write them."""

from __future__ import annotations

from typing import Any

# The fields are in no order that a database would give them back in.
FUNCTION = {"name": "add", "description": "Sums.", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}
TOOL = {"type": "function", "function": FUNCTION}
ARGUMENTS = {"second": 5, "a": 2}
USER = {"role": "user", "content": "2 + 5?"}
RESULT = {"role": "tool", "content": "7", "tool_call_id": "c1", "name": "add"}


def calling(arguments: Any = ARGUMENTS, content: Any = None, **more: Any) -> dict[str, Any]:
    function = {"name": "add", "arguments": arguments, **more}
    call = {"id": "c1", "type": "function", "function": function}
    return {"role": "assistant", "content": content, "tool_calls": [call]}
