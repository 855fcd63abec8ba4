"""Which results of the harness can be compared item by item: what their hashes tell apart, and what not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hand_pipeline import HandPipeline
from test_academic_stage import finished, prepared

from steerboard_contracts.report.academic import AcademicTask
from steerboard_contracts.stage.inputs import ModelInput
from support.models.lm_eval_environment import needs_lm_eval, write_lookup_model, write_tasks

pytestmark = [needs_lm_eval, pytest.mark.long]

# By name of a task, what it has instead of something that `sums` has, and which of the three hashes that changes.
VARIANTS = {
    "same": ("", "", ""),
    "length": ("max_gen_toks: 4", "max_gen_toks: 5", "asked"),
    "stops": ('["STOP"]', '["STOP", "END"]', "asked"),
    "sampled": ("do_sample: false", "do_sample: true, temperature: 0.5", "asked"),
    "words": ('"{{question}}"', '"{{question}} "', "asked"),
    "right": ('"{{answer}}"', '"{{answer}}0"', "items"),
    "reading": ("#(", "#+(", "scored"),
    "metric": ("aggregation: mean,", "aggregation: mean, ignore_case: true,", "scored"),
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> HandPipeline:
    folder = tmp_path_factory.mktemp("things")
    pipeline = HandPipeline(folder)
    tasks = write_tasks(folder / "tasks")
    sums = (tasks / "sums.yaml").read_text()
    for name, (this, other, _) in VARIANTS.items():
        text = sums.replace("task: sums", f"task: {name}")
        (tasks / f"{name}.yaml").write_text(text.replace(this, other) if this else text)
    path = write_lookup_model(folder / "lookup")
    # Another model, with a template of its own.
    other = Path(shutil.copytree(path, folder / "other"))
    for model, sign in ((path, "<"), (other, "<<")):
        template = "{% for turn in messages %}" + sign + "{{ turn.content }} {% endfor %}"
        settings = json.loads((model / "tokenizer_config.json").read_text())
        (model / "chat_template.jinja").unlink(missing_ok=True)
        (model / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": template}))
    for name, where in (("lookup", path), ("other", other)):
        pipeline.things[name] = ModelInput(name=name, path=str(where), content_hash=name)
    return pipeline


def hashes(task: AcademicTask) -> dict[str, str]:
    by_kind = {"items": task.items_hash, "asked": task.asked_hash, "scored": task.scored_hash}
    assert all(by_kind.values())
    return by_kind


def unlike(one: AcademicTask, other: AcademicTask) -> set[str]:
    ours, theirs = hashes(one), hashes(other)
    return {name for name in ours if ours[name] != theirs[name]}


def test_each_difference_in_how_a_task_is_asked_or_scored_shows(things: HandPipeline) -> None:
    tasks = finished(prepared(things, "variants", tasks=["sums", "code", *VARIANTS], limit=4))
    changed = {name: unlike(tasks["sums"], tasks[name]) for name in VARIANTS}
    assert changed == {name: {of} if of else set() for name, (_, _, of) in VARIANTS.items()}
    # The same again, in another process.
    again = finished(prepared(things, "again", tasks=["sums", "code"], limit=4))
    assert {name: unlike(tasks[name], again[name]) for name in again} == {"sums": set(), "code": set()}
    # The code of a metric is a part of how it scores.
    utils = things.directory / "tasks" / "utils.py"
    utils.write_text(utils.read_text().replace('"value = "', '"value  = "'))
    edited = finished(prepared(things, "edited", tasks=["sums", "code"], limit=4))
    assert {name: unlike(tasks[name], edited[name]) for name in edited} == {"sums": set(), "code": {"scored"}}


def test_prompts_are_compared_as_they_are_before_each_models_template(things: HandPipeline) -> None:
    asked = {"tasks": ["sums", "words"], "shots": {"sums": 2, "words": 2}, "chat_template": True, "limit": 4}
    ours, theirs = finished(prepared(things, "ours", **asked)), finished(prepared_for(things, "other", "theirs", asked))
    assert unlike(ours["sums"], theirs["sums"]) == set()
    assert unlike(ours["sums"], theirs["words"]) == {"asked"}
    few = finished(prepared(things, "few", **{**asked, "shots": {"sums": 1}, "tasks": ["sums"]}))
    assert unlike(ours["sums"], few["sums"]) == {"asked"}


def prepared_for(things: HandPipeline, model: str, name: str, config: dict[str, object]) -> Path:
    lookup, things.things["lookup"] = things.things["lookup"], things.things[model]
    try:
        return prepared(things, name, **config)
    finally:
        things.things["lookup"] = lookup
