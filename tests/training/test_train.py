"""The training stage by hand: what a run emits, what the five methods mean, and the model folder that comes out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from running import metrics_of, recorded
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.models import ModelInfo
from steerboard_workers.stages import train
from steerboard_workers.stages.models.model_io import load_policy, load_reward_model
from steerboard_workers.stages.training.steps import TrainingDiverged

QUICK = {"run": "train", "batch": 8, "epochs": 10, "max_steps": 3, "lr": 1e-3, "checkpoint_every": 0, "max_length": 96}


@pytest.fixture
def trained(make_stage, base_model):
    """trained(method, data=..., **config) -> (stage, succeeded)."""

    def run(method: str, data: str = "labelled", model: Path = base_model, **config):
        AcceleratorState._reset_state(reset_partial_state=True)  # a process trains once, these tests many times
        stage = make_stage({**QUICK, "method": method, **config}, model=model, data=data)
        return stage, train.run(stage)

    return run


def folder_of(stage) -> Path:
    return stage.directory / "outputs" / "model"


def weights(stage) -> dict[str, torch.Tensor]:
    return load_file(folder_of(stage) / "model.safetensors")


def same_weights(a, b) -> bool:
    return all(torch.equal(t, weights(b)[name]) for name, t in weights(a).items())


def test_sft_learns_and_reports_every_step(trained):
    stage, done = trained("sft", max_steps=12, lr=3e-3)
    steps = metrics_of(recorded(stage, "metrics"))
    assert sorted(steps) == list(range(1, 13))
    assert steps[1]["loss"] == pytest.approx(math.log(400), rel=0.05)  # random weights: about uniform
    assert steps[12]["loss"] < steps[1]["loss"] - 0.5
    assert {"lr", "grad_norm", "tokens", "truncated", "dropped", "token_accuracy", "perplexity"} <= set(steps[1])
    assert steps[12]["perplexity"] == pytest.approx(math.exp(steps[12]["loss"]))
    assert done.summary["eval_loss"] == steps[12]["eval_loss"]
    assert done.outputs[0].role == "sft"


def test_held_out_rows_are_never_trained_on(trained, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    for row in rows:
        if row["split"] == "held_out":
            row["response"] = "cake " * 10
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert same_weights(trained("sft")[0], trained("sft", data=str(other))[0])


def test_the_final_folder_loads_anywhere_and_answers_as_the_renderer(trained):
    stage, _done = trained("decision_transformer", score_scale="quantile")
    folder = folder_of(stage)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    policy = load_policy(folder)
    messages = [{"role": "user", "content": "bread or cake?"}]
    theirs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert theirs == policy.renderer.prompt_ids(messages, "5.00")
    asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False, rm_score=-2.5)
    assert asked == policy.renderer.prompt_ids(messages, "-2.50")
    assert model.config.use_cache
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    info = ModelInfo.model_validate_json((folder / "steerboard.json").read_text())
    assert info.lineage == {"parent": "m", "data": "d"}
    assert info.score_scale.kind == "quantile"
    assert info.condition.attributes[0].text(info.score_scale.score(1e9)) == "5.00"
    assert (info.score_format.limit, info.default_score) == (5.0, 5.0)
    assert info.method == "decision_transformer"
    assert not [p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pkl")]


def test_a_reward_model_starts_at_ln_2_and_learns_the_pairs(trained):
    stage, done = trained("reward_model", data="preferences", max_steps=25, lr=3e-3)
    steps = metrics_of(recorded(stage, "metrics"))
    assert steps[1]["loss"] == pytest.approx(math.log(2), abs=0.01)
    assert done.summary["held_out_accuracy"] > 0.9  # the longer answer is the better one
    assert done.summary["pairs"] == 20
    assert {"pair_accuracy", "margin", "reward_mean", "reward_std", "reward_length_correlation"} <= set(steps[1])
    folder = folder_of(stage)
    ours = load_reward_model(folder)
    theirs = AutoModelForSequenceClassification.from_pretrained(folder)
    rendered = [ours.renderer.render([{"role": "user", "content": "bread?"}], r).ids for r in ("flour.", "eggs " * 9)]
    width = max(map(len, rendered))
    padded = torch.tensor([ids + [ours.tokenizer.pad_token_id] * (width - len(ids)) for ids in rendered])
    with torch.no_grad():
        hidden = [ours.model.model(torch.tensor([ids])).last_hidden_state[0, -1] for ids in rendered]
        expected = torch.cat([ours.model.score(h) for h in hidden])
        torch.testing.assert_close(theirs(padded).logits.squeeze(-1), expected, rtol=1e-4, atol=1e-5)


def test_a_half_of_the_pairs_trains_on_half(trained):
    both = trained("reward_model", data="preferences")[1].summary
    halves = [trained("reward_model", data="preferences", half=half)[1].summary for half in "ab"]
    assert sum(h["rows"] for h in halves) == both["rows"]
    assert {h["pairs"] for h in halves} == {both["pairs"]}


def test_sharing_prompts_changes_no_reward_beyond_rounding(trained):
    runs = [trained("reward_model", data="preferences", share_prompt=share) for share in (True, False)]
    shared, apart = (metrics_of(recorded(stage, "metrics")) for stage, _ in runs)
    for step, values in shared.items():
        assert values["loss"] == pytest.approx(apart[step]["loss"], rel=1e-4)


def test_mle_filter_is_sft_on_the_rows_above_the_threshold(trained, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    rewards = torch.tensor([row["reward"] for row in rows], dtype=torch.float64)
    z = (rewards - rewards.mean()) / rewards.std(unbiased=False)
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row, value in zip(rows, z, strict=True) if value > 0.2))
    stage, done = trained("mle_filter", threshold=0.2)
    assert same_weights(stage, trained("sft", data=str(kept))[0])
    steps = metrics_of(recorded(stage, "metrics"))
    assert steps[1]["kept"] == pytest.approx((z > 0.2).double().mean().item())
    assert done.summary["kept.generated"] > done.summary["kept.instructions"]  # long answers are the good ones


def test_an_empty_filter_result_is_a_clear_error(trained):
    with pytest.raises(EmptySelection, match="no training rows") as refused:
        trained("mle_filter", threshold=50.0)
    assert "threshold" in refused.value.hint


def test_rows_that_are_all_held_out_are_said_to_be(trained, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "preferences.jsonl").read_text().splitlines()]
    held_out = tmp_path / "held_out.jsonl"
    held_out.write_text("".join(json.dumps(row | {"split": "held_out"}) + "\n" for row in rows))
    with pytest.raises(EmptySelection, match="no training rows") as refused:
        trained("reward_model", data=str(held_out))
    assert "held-out" in refused.value.hint
    assert "threshold" not in refused.value.hint


def test_rwr_with_infinite_beta_is_sft(trained):
    stage, done = trained("rwr", beta=1e12)
    assert same_weights(stage, trained("sft")[0])
    assert done.summary["effective_sample_size"] == pytest.approx(1.0)


def test_rwr_reports_how_far_its_weights_spread(trained):
    stage, _ = trained("rwr", beta=0.2, max_weight=3.0)
    first = metrics_of(recorded(stage, "metrics"))[1]
    assert first["max_weight"] == 3.0
    assert 0 < first["clipped"] < 1
    assert 0 < first["effective_sample_size"] < 0.9


def test_decision_transformer_learns_as_many_labels_as_sft_and_sees_its_score(trained, make_stage, base_model):
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    data = {}
    for method in ("sft", "decision_transformer"):
        stage = make_stage({**QUICK, "method": method}, model=base_model)
        start = open_model(base_model, stage.spec.config)
        data[method] = load_data(stage, training_of(stage.spec.config), start.renderer)
    sft, dt = data["sft"].train, data["decision_transformer"].train
    assert [e.labels for e in sft] == [e.labels for e in dt]
    assert [e.responses[0].tolist() for e in sft] == [e.responses[0].tolist() for e in dt]
    scale = data["decision_transformer"].info["score_scale"]
    form = data["decision_transformer"].info["condition"].attributes[0]
    rows = {row["row"]: row for row in stage.rows("data")}
    for example in dt[:20]:
        written = start.tokenizer.decode(example.prompt)
        assert written.endswith(f"Assistant: <rm_score> {form.text(scale.score(rows[example.row]['reward']))}")


def test_a_decision_transformer_may_learn_from_the_rows_of_mle_filter_with_the_scores_of_all(make_stage, base_model):
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    def rows_of(**config):
        stage = make_stage({**QUICK, **config}, model=base_model)
        start = open_model(base_model, stage.spec.config)
        return load_data(stage, training_of(stage.spec.config), start.renderer)

    better = rows_of(method="mle_filter", threshold=0.5)
    hybrid = rows_of(method="decision_transformer", threshold=0.5, score_scale="quantile")
    full = rows_of(method="decision_transformer", score_scale="quantile")
    assert 0 < len(hybrid.train) < len(full.train)
    assert [e.row for e in hybrid.train] == [e.row for e in better.train]
    assert [e.row for e in hybrid.held_out] == [e.row for e in better.held_out]
    prompts = {e.row: e.prompt.tolist() for e in full.train}
    assert all(e.prompt.tolist() == prompts[e.row] for e in hybrid.train)
    with pytest.raises(EmptySelection, match="no training rows are left") as refused:
        rows_of(method="decision_transformer", threshold=50.0)
    assert "threshold" in str(refused.value.hint)


def test_an_empty_score_is_no_score(base_model):
    render = load_policy(base_model).renderer
    messages = [{"role": "user", "content": "bread?"}]
    assert render.render(messages, "flour.", "") == render.render(messages, "flour.", None)


def test_twenty_steps_are_the_same_however_the_global_batch_is_split(trained):
    """1 x 8, 2 x 4 and 8 x 1 sequences a micro-batch, to 1e-5 in float32."""
    curves = []
    for micro_batch in (8, 4, 1):
        stage, _ = trained("sft", max_steps=20, micro_batch=micro_batch, evaluate_rows=1)
        curves.append([values["loss"] for _, values in sorted(metrics_of(recorded(stage, "metrics")).items())])
    assert len(curves[0]) == 20
    for curve in curves[1:]:
        assert curve == pytest.approx(curves[0], rel=1e-5)


def test_packed_training_equals_padded(trained):
    losses = []
    for batching in ("packed", "padding_free", "padded"):
        stage, _ = trained("sft", batching=batching, max_steps=5)
        losses.append([values["loss"] for _, values in sorted(metrics_of(recorded(stage, "metrics")).items())])
    for curve in losses[:2]:
        assert curve == pytest.approx(losses[2], rel=1e-5)


def test_gradient_checkpointing_changes_nothing(trained):
    plain, checkpointed = trained("sft")[0], trained("sft", gradient_checkpointing=True)[0]
    for name, tensor in weights(plain).items():
        torch.testing.assert_close(tensor, weights(checkpointed)[name], rtol=1e-4, atol=1e-6)


def test_bf16_trains_float32_weights(trained):
    stage, _ = trained("sft", precision="bf16")
    curve = metrics_of(recorded(stage, "metrics"))
    full = metrics_of(recorded(trained("sft")[0], "metrics"))
    assert curve[3]["loss"] == pytest.approx(full[3]["loss"], rel=0.02)
    assert curve[3]["loss"] != full[3]["loss"]
    assert {t.dtype for t in weights(stage).values()} == {torch.float32}


def test_the_same_run_twice_is_bit_for_bit_the_same(trained):
    assert same_weights(trained("sft")[0], trained("sft")[0])
    assert not same_weights(trained("sft")[0], trained("sft", seed=1)[0])


def test_no_gradient_grows_past_the_clip(trained):
    """A tiny clip makes every step as long as the learning rate allows, whatever the loss is."""
    norms = [
        values["grad_norm"]
        for values in metrics_of(recorded(trained("sft", max_grad_norm=1e-4)[0], "metrics")).values()
    ]
    assert all(norm > 1e-4 for norm in norms)  # reported before clipping


def test_divergence_is_named(trained):
    with pytest.raises(TrainingDiverged) as raised:
        trained("sft", lr=1.0, max_steps=400, max_grad_norm=1e30, weight_decay=1e4, batch=2)
    assert raised.value.code == "training_diverged"


def test_nan_rewards_are_refused(trained, tmp_path):
    path = tmp_path / "nan.jsonl"
    path.write_text('{"prompt": [{"role": "user", "content": "x"}], "response": "y", "reward": NaN, "row": 7}\n')
    with pytest.raises(BadInput, match="row 7"):
        trained("rwr", data=str(path))


def test_a_dataset_of_the_wrong_kind_is_refused(trained):
    with pytest.raises(BadInput) as raised:
        trained("reward_model", data="labelled")
    assert raised.value.code == "wrong_dataset_kind"
    assert raised.value.hint == "Convert it: `steerboard datasets convert d pairs_from_ranks | best_against_worst`"


@pytest.mark.parametrize(("method", "data"), [("sft", "labelled"), ("dpo", "preferences")])
def test_rows_that_are_too_long_are_cut_left_out_or_refused(make_stage, base_model, method, data):
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    def load(**settings):
        config = {**QUICK, "method": method, "max_length": 40, **settings}
        stage = make_stage(config, model=base_model, data=data)
        config = stage.spec.config
        return load_data(stage, training_of(config), open_model(base_model, config).renderer)

    cut, left = load(), load(too_long="drop")
    whole = [example.row for example in cut.train if not example.truncated]
    assert 0 < len(whole) < len(cut.train) == 100
    assert [example.row for example in left.train] == whole
    assert not any(example.truncated for example in [*left.train, *left.held_out])
    count = cut.summary["too_long_rows"]
    assert left.summary["too_long_rows"] == left.summary["dropped_rows"] == count
    assert count == 120 - len(whole) - len(left.held_out)
    first = min({example.row for example in cut.train} - set(whole))
    with pytest.raises(BadInput, match=f"{count} of 120 rows of d have more than 40 tokens; .* row {first}\n"):
        load(too_long="refuse")


def test_rows_that_cannot_fit_are_dropped_and_counted(trained, data_folder, tmp_path):
    _, done = trained("sft", max_length=24)
    assert done.summary["truncated"] > 0.3
    with pytest.raises(EmptySelection, match="fits into"):
        trained("sft", max_length=6)
