"""YAML scalars as people write hyper-parameters: the YAML 1.2 core schema.

PyYAML follows YAML 1.1, where `1e-4` is a string, `no` is false, `010` is eight and `1:30` is ninety.
ruamel.yaml follows 1.2, but still reads `1_000` and `0b11` as numbers and 2020-01-01 as a date; `document` names its
other limits.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"


class CoreLoader(yaml.SafeLoader):
    """A safe loader that types plain scalars by the YAML 1.2 core schema; used to compose, never to construct."""


# A new dict, so SafeLoader's own table stays unchanged.
CoreLoader.yaml_implicit_resolvers = {}
for _name, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    (
        "float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+.0123456789"),
    ),
):
    CoreLoader.add_implicit_resolver(_TAG + _name, re.compile(_pattern), _first)


def scalar_value(node: yaml.ScalarNode) -> Any:
    """The Python value of a composed scalar. Raises `ValueError` for an unknown tag."""
    kind, text = str(node.tag).removeprefix(_TAG), str(node.value)
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        # Python refuses to convert absurdly long numbers; so do we, with words.
        if len(text) > 30:
            raise ValueError("is a number of more than 30 digits")
        return int(text)
    if kind == "float":
        lowered = text.lower()
        return float(lowered.replace(".inf", "inf").replace(".nan", "nan"))
    raise ValueError(f"has the tag `{node.tag}`, which recipes do not use")
