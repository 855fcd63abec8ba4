"""Methods of other packages: what cannot be used is left out with its reason, and keeps nothing from starting."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import pytest

from steerboard_contracts import methods
from steerboard_contracts.specs.method import BadMethod, Frozen, FurtherData, MethodSpec, Preview
from steerboard_contracts.specs.slots import datasets
from steerboard_contracts.training import TrainingConfig


class ToyConfig(TrainingConfig):
    """A method of this test."""

    method: Literal["toy"]
    beta: float = 1.0


def toy(**changes: Any) -> MethodSpec:
    fields: dict[str, Any] = {
        "name": "toy",
        "title": "Toy",
        "about": "Nothing.",
        "source": "nowhere",
        "config": ToyConfig,
        "training": "toy_package.training:Toy",
        "data": ("instructions",),
        "outputs": ("policy",),
    }
    return MethodSpec(**(fields | changes))


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=methods.GROUP)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module `toy_specs` of someone else."""
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("toy_specs", None)
    (tmp_path / "toy_specs.py").write_text(
        "from dataclasses import replace\nfrom test_registry import toy\nSPEC = toy()\nANOTHER = toy()\nNO_SPEC = 7\n"
    )
    return tmp_path


@pytest.mark.usefixtures("package")
def test_a_method_of_another_package_stands_behind_the_platforms_own() -> None:
    own = [*methods.methods().values()]
    gathered = methods.gather(own, [entry("toy", "toy_specs:SPEC")])
    assert [*gathered.methods] == [*methods.methods(), "toy"]
    assert gathered.faults == ()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("point", "code", "words"),
    [
        (entry("toy", "nowhere_at_all:SPEC"), "method_not_importable", "No module named 'nowhere_at_all'"),
        (entry("toy", "toy_specs:MISSING"), "method_not_importable", "MISSING"),
        (entry("toy", "toy_specs:NO_SPEC"), "bad_method", "is not a MethodSpec but int"),
        (entry("other", "toy_specs:SPEC"), "bad_method", "is called other, and its method toy"),
    ],
)
def test_a_method_that_cannot_be_used_is_left_out_with_its_reason(point: EntryPoint, code: str, words: str) -> None:
    own = [*methods.methods().values()]
    gathered = methods.gather(own, [point])
    assert [*gathered.methods] == [*methods.methods()]
    (fault,) = gathered.faults
    assert (fault.name, fault.code) == (point.name, code)
    assert words in fault.detail


@pytest.mark.parametrize("body", ["raise SystemExit(3)", "1 / 0", "import nothing_like_it"])
def test_a_package_that_breaks_when_it_is_imported_takes_nobody_with_it(package: Path, body: str) -> None:
    (package / "toy_specs.py").write_text(body + "\n")
    gathered = methods.gather([*methods.methods().values()], [entry("toy", "toy_specs:SPEC")])
    assert gathered.faults[0].code == "method_not_importable"
    assert [*gathered.methods] == [*methods.methods()]


@pytest.mark.usefixtures("package")
def test_of_two_methods_of_one_name_the_platforms_own_stays() -> None:
    mine = toy(title="The platform's own")
    gathered = methods.gather([mine], [entry("toy", "toy_specs:SPEC")])
    assert gathered.methods["toy"] is mine
    assert gathered.faults[0].code == "method_name_taken"
    twice = methods.gather([], [entry("toy", "toy_specs:ANOTHER"), entry("toy", "toy_specs:SPEC")])
    assert [*twice.methods] == ["toy"]
    assert [fault.code for fault in twice.faults] == ["method_name_taken"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "To y"}, "not a valid method name"),
        ({"name": "other"}, 'needs the field `method: Literal["other"]`'),
        ({"config": dict}, "not a subclass of TrainingConfig"),
        ({"training": "toy_package"}, "is not of the form `package.module:Class`"),
        ({"data": ("pairs",)}, "unknown kind of dataset 'pairs'"),
        ({"data": ()}, "it names no kind of dataset"),
        ({"outputs": ("judge",)}, "unknown role of a model 'judge'"),
        ({"outputs": ("policy", "critic")}, "name each role once, and those of also_trains"),
        (
            {"frozen": (Frozen("reference", frozenset({"sft"}), "", uses=("logits",)),)},
            "use of a frozen model 'logits'",
        ),
        (
            {"frozen": (Frozen("judge", frozenset({"reward"}), "", uses=("log_probs",), reads="ends"),)},
            "judge cannot give them",
        ),
        ({"reads": "all"}, "unknown way to read 'all'"),
        ({"sequences": 0}, "must be 1 or more"),
        ({"form": ("gamma",)}, "has no field `gamma`"),
        ({"condition": "score"}, "has no field `score`"),
        ({"preview": Preview("weights", {"beta": "gamma"})}, "has no field `gamma`"),
        ({"preview": Preview("weights", {})}, "the preview weights takes"),
        ({"frozen": (Frozen("data", frozenset({"sft"}), ""),)}, "the name of another input"),
        ({"further_data": (FurtherData("data", ("instructions",), "", "beta"),)}, "or is already taken"),
        ({"further_data": (FurtherData("beta", ("instructions",), "", "beta"),)}, "is not a valid name for a"),
        ({"further_data": (FurtherData("texts", ("books",), "", "beta"),)}, "unknown kind of dataset 'books'"),
        ({"further_data": (FurtherData("texts", ("instructions",), "", "gamma"),)}, "has no field `gamma`"),
    ],
)
def test_a_description_that_does_not_fit_says_what_is_wrong(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadMethod) as refused:
        toy(**changes)
    assert words in refused.value.detail


def test_a_description_gives_inputs_and_words() -> None:
    spec = toy(frozen=(Frozen("reference", frozenset({"sft", "policy"}), "What it must stay near to."),), label="TOY")
    assert [*spec.slots] == ["model", "data", "reference"]
    further = replace(spec, further_data=(FurtherData("texts", ("instructions",), "What it must not forget.", "beta"),))
    assert [*further.slots] == ["model", "data", "texts", "reference"]
    assert further.slots["texts"] == datasets("instructions", required=False)
    assert (spec.slots["reference"].thing, spec.slots["reference"].allowed) == ("model", {"sft", "policy"})
    assert (spec.title, spec.label, spec.use) == ("Toy", "TOY", "Train TOY on it")
