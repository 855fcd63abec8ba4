"""A verdict as JUnit XML, which CI systems show: one test case per rule."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from steerboard_contracts.report.gate import GateVerdict

# What XML 1.0 cannot hold, not even escaped.
_UNPRINTABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(verdict: GateVerdict) -> str:
    """A rule that fails is a failure, one that cannot be decided an error."""
    failures = sum(rule.outcome == "fail" for rule in verdict.rules)
    errors = sum(rule.outcome == "invalid" for rule in verdict.rules)
    counts = {"tests": str(len(verdict.rules)), "failures": str(failures), "errors": str(errors), "time": "0"}
    root = ElementTree.Element("testsuites", {"name": "steerboard gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(verdict.evaluation), **counts, "skipped": "0"})
    for rule in verdict.rules:
        case = {"classname": _clean(f"gate.{verdict.evaluation}"), "name": _clean(rule.text), "time": "0"}
        case_element = ElementTree.SubElement(suite, "testcase", case)
        if rule.outcome != "pass":
            tag, kind = ("failure", "fail") if rule.outcome == "fail" else ("error", "invalid")
            element = ElementTree.SubElement(case_element, tag, {"type": kind, "message": _clean(rule.why)})
            element.text = _clean(f"{rule.text}: {rule.why}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)
