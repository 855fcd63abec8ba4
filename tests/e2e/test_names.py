"""All browser tests share one server, on which a person can be invited once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path


def test_no_two_tests_invite_the_same_person() -> None:
    places = defaultdict(list)
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith((".invite", ".annotator")):
                place = f"{path.name}:{call.lineno}"
                assert isinstance(call.args[0], ast.Constant | ast.JoinedStr), f"{place}: write the name in the call"
                places[ast.unparse(call.args[0])].append(place)
    assert len(places) > 10
    assert {name: found_in for name, found_in in places.items() if len(found_in) > 1} == {}
