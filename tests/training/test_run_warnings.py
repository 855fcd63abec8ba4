"""What a run's owner must know while it trains: rows that were cut, experts that do not learn, how much does."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from running import recorded
from safetensors.torch import load_file

from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.run_kinds.check_rows import row_check_of
from steerboard_workers.stages import check_rows, train
from steerboard_workers.stages.models.model_io import load_tokenizer
from support.models.mixtures import FAMILIES, mixture_of

QUICK = {"run": "train", "batch": 4, "max_steps": 1, "evaluate_every": 0, "checkpoint_every": 0, "lr": 1e-3}


def trained(make_stage, model, data="labelled", **config):
    """The run's last word, and what it reported before its first step."""
    stage = make_stage({**QUICK, **config}, model=model, data=data)
    result = train.run(stage)
    (prepared,) = recorded(stage, "prepared")
    first_step = next(place for place, event in enumerate(stage._events.events) if event.type == "metrics")
    assert stage._events.events.index(prepared) < first_step
    return stage, result.summary, prepared


def warnings_of(prepared) -> dict[str, tuple[str, str]]:
    return {warning.code: (warning.level, warning.message) for warning in prepared.warnings}


@pytest.mark.parametrize(("method", "data"), [("sft", "labelled"), ("dpo", "preferences"), ("kto", "unpaired")])
def test_a_run_that_cuts_most_of_its_rows_warns_before_its_first_step(make_stage, base_model, method, data):
    stage, summary, prepared = trained(make_stage, base_model, data, method=method, max_length=24)
    level, message = warnings_of(prepared)["rows_too_long"]
    assert level == "serious"
    assert f"{summary['too_long_rows'] / 120:.0%} of the 120 rows of d have more than 24 tokens" in message
    assert ("warning", message) in [(line.level, line.message) for line in recorded(stage, "log")]


@pytest.mark.parametrize(
    ("method", "data"),
    [("sft", "labelled"), ("reward_model", "preferences"), ("dpo", "preferences"), ("kto", "unpaired")],
)
def test_a_check_before_the_run_counts_what_the_run_will_count(make_stage, base_model, method, data):
    config = {**QUICK, "method": method, "max_length": 24}
    _, summary, _ = trained(make_stage, base_model, data, method=method, max_length=24)
    check = row_check_of(RUN_CONFIG.validate_python(config)).model_dump(mode="json")
    counts = check_rows.run(make_stage(check, model=base_model, data=data)).summary
    assert (counts["too_long_rows"], counts["max_length"]) == (summary["too_long_rows"], 24)
    assert (counts["rows"], counts["checked"], counts["refused_rows"]) == (120, 120, 0)
    some = check_rows.run(make_stage({**check, "rows": 50}, model=base_model, data=data)).summary
    assert (some["rows"], some["checked"]) == (120, 40)


def test_a_check_names_the_first_rows_that_the_template_refuses(make_stage, base_model, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    for place in (3, 5, 7, 11):
        rows[place]["prompt"] = [{"role": "user", "content": "One."}, {"role": "user", "content": "Two."}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    strict = tmp_path / "strict"
    shutil.copytree(base_model, strict)
    tokenizer = load_tokenizer(strict)
    tokenizer.chat_template = (
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}[{{ m.role }}] {{ m.content }}"
        + tokenizer.eos_token
        + "\n{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
    )
    tokenizer.save_pretrained(strict)
    config = RUN_CONFIG.validate_python({**QUICK, "method": "sft", "template": "chat"})
    check = row_check_of(config).model_dump(mode="json")
    counts = check_rows.run(make_stage(check, model=strict, data=str(tmp_path / "d.jsonl"))).summary
    assert counts["refused_rows"] == 4
    assert [row["row"] for row in counts["refused"]] == [3, 5, 7]
    assert "roles must alternate" in counts["refused"][0]["message"]


def test_rows_that_are_left_out_are_told_from_those_that_are_cut(make_stage, base_model):
    _, summary, prepared = trained(make_stage, base_model, method="sft", max_length=24, too_long="drop")
    message = warnings_of(prepared)["rows_too_long"][1]
    assert f" {summary['too_long_rows']} were left out." in message
    assert "were cut" not in message


def test_a_few_long_rows_are_no_alarm_and_none_is_no_warning(make_stage, base_model, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    for row in rows:
        row["prompt"], row["response"] = [{"role": "user", "content": "bread"}], "flour and water"
    for long in (0, 1, 2):
        for row in rows[:long]:
            row["response"] = "flour and water " * 100
        path = tmp_path / f"{long}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        _, _, prepared = trained(make_stage, base_model, str(path), method="sft")
        warning = warnings_of(prepared).get("rows_too_long")
        # 1 of 120 rows is less than 1%.
        assert warning is None if long < 2 else warning is not None and warning[0] == "warning"


@pytest.fixture(scope="module", params=FAMILIES)
def mixture(request, base_model, tmp_path_factory):
    return mixture_of(base_model, tmp_path_factory.mktemp(request.param) / "model", request.param)


def test_a_mixture_of_experts_is_trained_with_a_warning_where_its_router_loss_is_left_out(make_stage, mixture):
    _, summary, prepared = trained(make_stage, mixture, method="sft", router_aux_loss=0)
    assert warnings_of(prepared).keys() == {"router_loss_left_out"}
    assert "a mixture of 4 experts" in warnings_of(prepared)["router_loss_left_out"][1]
    assert summary["trainable_parameters"] == summary["parameters"]
    for without in ({}, {"freeze_router": True}, {"router_aux_loss": 0.1}):
        _, _, prepared = trained(make_stage, mixture, method="sft", **without)
        assert not prepared.warnings


def test_lora_on_linear_layers_warns_that_no_expert_learns(make_stage, mixture):
    lora = {"targets": "linear", "rank": 2}
    stage, summary, prepared = trained(make_stage, mixture, method="sft", lora=lora)
    level, message = warnings_of(prepared)["experts_not_adapted"]
    assert (level, "leaves all 4 experts as they are" in message) == ("serious", True)
    before, after = (
        {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}
        for folder in (mixture, stage.directory / "outputs" / "model")
    )
    changed = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert changed
    assert not any("expert" in name for name in changed)
    assert 0 < summary["trainable_parameters"] < summary["parameters"] / 10
    _, _, prepared = trained(make_stage, mixture, method="sft", lora={"targets": "experts", "rank": 2})
    assert "experts_not_adapted" not in warnings_of(prepared)


def test_how_many_parameters_learn_is_known_before_the_first_step(make_stage, base_model):
    for lora in (None, {"rank": 2}):
        _, summary, prepared = trained(make_stage, base_model, method="sft", lora=lora)
        figures = ("parameters", "trainable_parameters")
        assert [prepared.summary[name] for name in figures] == [summary[name] for name in figures]
        assert (summary["trainable_parameters"] < summary["parameters"]) == (lora is not None)
        assert prepared.warnings == []


@pytest.mark.parametrize(("method", "data"), [("sft", "labelled"), ("kto", "preferences")])
def test_a_run_whose_epochs_end_before_its_max_steps_warns_before_its_first_step(make_stage, base_model, method, data):
    config = {"method": method, "batch": 64, "epochs": 2}
    _, summary, prepared = trained(make_stage, base_model, data, **config, max_steps=1000)
    steps = summary["steps"]
    assert steps < 1000
    message = warnings_of(prepared)["fewer_steps"][1]
    assert message.startswith(f"Training ends after {steps} steps, the end of 2 epochs, and max_steps is 1,000. ")
    _, _, prepared = trained(make_stage, base_model, data, **config, max_steps=steps)
    assert "fewer_steps" not in warnings_of(prepared)
