"""Frozen models of a training run: their log-probs are read once for all runs on the same data, never wrongly."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import toy_pairs
from accelerate.state import AcceleratorState
from running import changed_weights, forked, metrics_of, ran, recorded, weights_of, with_config
from safetensors.torch import load_file, save_file

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.batches.batch_source import ListSource
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages import train
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training import passes
from steerboard_workers.stages.training.frozen import log_prob_cache
from steerboard_workers.stages.training.frozen import models as frozen
from steerboard_workers.stages.training.frozen.log_prob_cache import LogProbCache
from steerboard_workers.stages.training.frozen.reference_check import ReferenceDiffers, check_equal
from steerboard_workers.stages.training.update import Update
from support.source_tree import SourceTree


def known_passes(stage_or_events) -> tuple[int, int]:
    """(passes found, passes in all) of the last attempt."""
    events = recorded(stage_or_events, "log") if isinstance(stage_or_events, Stage) else stage_or_events
    lines = [e.message for e in events if e.type == "log"]
    matches = [m for line in lines if (m := re.fullmatch(r"log-probs of reference: (\d+) of (\d+) .*", line))]
    return int(matches[-1][1]), int(matches[-1][2])


def test_a_reference_that_is_the_start_model_gives_a_first_step_of_ln_2(make_toy, base_model):
    """Left out or named, alone or in a copy: differences of nothing, and z of nothing, since the anchor is it too."""
    for given in ({}, {"reference": base_model}):
        first = ran(make_toy(given))[1]
        assert first["loss"] == pytest.approx(math.log(2), abs=1e-6)
        assert first["margin"] == pytest.approx(0.0, abs=1e-4)
        assert first["z"] == pytest.approx(0.0, abs=1e-4)


def test_another_reference_is_opened_and_read_as_transformers_reads_it(make_toy, other_model, monkeypatch):
    """Sums over the supervised tokens, end token included, of the model that the input names."""
    from transformers import AutoModelForCausalLM

    seen: list[Example] = []
    objective = toy_pairs.ToyObjective.prepare
    monkeypatch.setattr(toy_pairs.ToyObjective, "prepare", lambda self, e, p: seen.extend(e) or objective(self, e, p))
    ran(make_toy({"reference": other_model}, max_steps=1))
    model = AutoModelForCausalLM.from_pretrained(other_model)
    for example in seen[:6]:
        for place, response in enumerate(example.responses):
            ids = torch.tensor([*example.prompt, *response]).long()
            with torch.no_grad():
                log_probs = model(ids[None]).logits[0].log_softmax(-1)
            start = len(example.prompt)
            labels = log_probs[start - 1 : -1].gather(1, ids[start:, None]).sum()
            assert float(example.frozen_log_probs["reference"][place]) == pytest.approx(float(labels), rel=1e-5)
            assert example.label_counts[place] == len(response)


def test_what_is_asked_in_the_middle_of_training_stays_as_it_was(make_toy, base_model, other_model):
    steps = ran(make_toy({"anchor": other_model}, max_steps=2, lr=1e-9))
    z = [values["z"] for values in steps.values()]
    assert all(abs(value) > 0.1 for value in z)  # another model than the one that learns


def test_a_frozen_model_takes_no_gradient_and_no_dropout(make_toy, base_model, tmp_path):
    """A reference with dropout in its config gives what it gives without."""
    with_dropout = with_config(base_model, tmp_path / "model", attention_dropout=0.5)
    first = ran(make_toy({"anchor": with_dropout}, max_steps=1))[1]
    assert first["z"] == pytest.approx(0.0, abs=1e-4)


def test_a_frozen_model_with_other_token_ids_is_refused(make_toy, base_model, tmp_path):
    other = tmp_path / "model"
    shutil.copytree(base_model, other)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    a, b = [token for token in vocabulary if token.isalpha()][:2]
    vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(BadInput, match="another tokenizer") as refused:
        ran(make_toy({"reference": other}))
    assert refused.value.code == "tokenizer_differs"


def test_two_runs_on_the_same_data_pay_for_the_reference_once(make_toy, other_model, tmp_path):
    """Whatever else of their configs differs, and with the very same numbers."""
    first = make_toy({"reference": other_model}, tmp_path / "cache")
    second = make_toy({"reference": other_model}, tmp_path / "cache", micro_tokens=512, lr=5e-4, beta=0.3)
    alone = make_toy({"reference": other_model}, micro_tokens=512, lr=5e-4, beta=0.3)
    ran(first)
    assert ran(second) == ran(alone)
    known, parts = known_passes(first)
    assert known == 0
    assert known_passes(second) == (parts, parts)
    assert parts > 3
    assert all(torch.equal(t, weights_of(alone)[name]) for name, t in weights_of(second).items())


IDENTITY = {"weights": "w", "dtype": "float32", "device": "cpu", "template": "plain"}
BATCHER = Batcher("padded", "labels", 64, 0)


def example(prompt=(5, 6, 7), responses=((8, 9), (3,)), supervised=None) -> Example:
    ids = [np.array(part, dtype=np.int32) for part in (prompt, *responses)]
    learned = None if supervised is None else np.array(supervised)
    return Example(0, ids[0], tuple(ids[1:]), prompt_supervised=learned)


def kept(folder: Path, part: list[Example], batcher: Batcher = BATCHER, **changes) -> bool:
    """Whether the cache of this identity knows the part; if not, it does from now on."""
    cache = LogProbCache(folder, attempt=1, writer="r", main=True, batcher=batcher, **{**IDENTITY, **changes})
    alone = type("Alone", (), {"accelerator": type("One", (), {"num_processes": 1})})
    with cache:
        known = cache.known([part], alone)[0] is not None
        if not known:
            cache.add(part, np.zeros(sum(len(e.responses) for e in part), dtype=np.float32), 1.0)
    return known


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ([example()], {"weights": "v"}),
        ([example()], {"dtype": "bfloat16"}),
        ([example()], {"template": "chat"}),
        ([example()], {"device": "cuda"}),
        ([example()], {"batcher": Batcher("packed", "labels", 64, 0)}),
        ([example()], {"batcher": Batcher("padded", "labels", 64, 0, share=True)}),
        ([example(prompt=(5, 6, 4))], {}),
        ([example(responses=((8, 4), (3,)))], {}),
        ([example(responses=((8,), (9, 3)))], {}),
        ([example(prompt=(5, 6), responses=((7, 8, 9), (3,)))], {}),
        ([example(responses=((3,), (8, 9)))], {}),
        ([example(supervised=(False, True, False))], {}),
        ([example(), example(prompt=(1, 2))], {}),
    ],
)
def test_a_change_of_anything_that_decides_a_log_prob_is_another_entry(tmp_path, part, changes):
    assert not kept(tmp_path, [example()])
    assert kept(tmp_path, [example()])
    assert not kept(tmp_path, part, **changes)


# Imported by the pass, but of its values these decide at most what the key has as it is: token ids, layout, dtype.
DECIDES_NO_LOG_PROB = {
    "alignment.batches.batch_source",
    "alignment.batches.order",
    "alignment.condition_variants",
    "alignment.divergence",
    "alignment.limits",
    "alignment.missing_rewards",
    "alignment.objectives",
    "alignment.rendering.chat_template",
    "alignment.rendering.control_tokens",
    "alignment.rendering.day",
    "alignment.rendering.prefixes",
    "alignment.rendering.render",
    "alignment.rendering.replies",
    "alignment.rendering.templates",
    "alignment.rendering.tool_turns",
    "alignment.rollouts",
    "alignment.step_ends",
    "alignment.step_rewards",
    "alignment.token_texts",
    "alignment.training_method",
    "phases",
    "stages.distributed.optimiser",
    "stages.models.foreign",
    "stages.models.tokens",
    "stages.oom",
    "stages.runtime",
    "stages.training.condition_gain",
    "stages.training.data",
    "stages.training.frozen.log_prob_cache",
    "stages.training.frozen.reference_check",
}


def test_the_cache_knows_all_code_that_the_pass_imports():
    """A module that is new there becomes part of the key, or one of the list above."""
    tree = SourceTree.installed("steerboard_workers")
    start = ("distributed.zero", "training.frozen.models", "training.frozen.model", "training.passes")
    paths = tree.closure([f"steerboard_workers.stages.{module}" for module in start])
    modules = {module for module, path in paths.items() if path.name != "__init__.py"}
    assert modules == {*log_prob_cache.CODE, *(f"steerboard_workers.{module}" for module in DECIDES_NO_LOG_PROB)}


@pytest.mark.parametrize("name", [*log_prob_cache.CODE, *log_prob_cache.LIBRARIES])
def test_other_code_or_another_version_of_a_library_is_another_entry(tmp_path, monkeypatch, name):
    kept(tmp_path, [example()])
    source, version = log_prob_cache.source_of, log_prob_cache.version_of
    monkeypatch.setattr(log_prob_cache, "source_of", lambda module: source(module) + (b"#" if module == name else b""))
    monkeypatch.setattr(log_prob_cache, "version_of", lambda library: "0" if library == name else version(library))
    log_prob_cache.code_hash.cache_clear()
    try:
        assert not kept(tmp_path, [example()])
    finally:
        log_prob_cache.code_hash.cache_clear()


def test_other_weights_or_another_adapter_are_another_reference(make_toy, make_stage, base_model, tmp_path):
    """The files themselves decide, whatever the input calls them."""
    AcceleratorState._reset_state(reset_partial_state=True)
    config = {
        "run": "train",
        "method": "sft",
        "batch": 8,
        "max_steps": 1,
        "max_length": 96,
        "lora": {"rank": 2, "merge": False},
    }
    trained = make_stage(config, model=base_model)
    train.run(trained)
    adapter = trained.directory / "outputs" / "model"
    other = tmp_path / "adapter"
    shutil.copytree(adapter, other)
    tensors = load_file(other / "adapter_model.safetensors")
    save_file({name: t + 0.01 for name, t in tensors.items()}, other / "adapter_model.safetensors")
    for reference in (changed_weights(base_model, tmp_path / "a", 0.01), adapter, other):
        stage = make_toy({"reference": reference}, tmp_path / "cache", max_steps=1)
        ran(stage)
        assert known_passes(stage)[0] == 0
    ran(stage)
    assert known_passes(stage)[0] == known_passes(stage)[1]


@pytest.mark.long
def test_a_pass_that_is_killed_goes_on_and_the_run_is_the_undisturbed_one(make_toy, other_model, monkeypatch):
    """-9 in the middle of the pass, then in training: bit for bit as if nothing had happened."""
    monkeypatch.setattr(passes, "PASS_TOKENS", 64)
    config = {"max_steps": 6, "checkpoint_every": 2}
    plain, stage = make_toy({"reference": other_model}, **config), make_toy({"reference": other_model}, **config)
    draw = random.Random(1)
    events = forked(plain, 1, None, draw)
    forked(stage, 1, 1, draw, lines=b'"phase":"log-probs of reference"')
    known, parts = known_passes(forked(stage, 2, 3, draw))
    assert 0 < known < parts
    last = forked(stage, 3, None, draw)
    assert metrics_of(last) == metrics_of(events)
    assert all(torch.equal(t, weights_of(stage)[name]) for name, t in weights_of(plain).items())


def changed_entry(cache: Path, place: int, *, fits: bool) -> None:
    """Takes 2 nats from the first number of an entry; `fits`: with the digest of what is then there."""
    path = next(cache.glob("*rows.jsonl"))
    rows = [json.loads(line) for line in path.read_text().splitlines() if line]
    row = rows[place]
    row["values"][0] -= 2.0
    if fits:
        row["digest"] = log_prob_cache._digest(row["key"], row["values"])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_an_entry_whose_numbers_were_changed_is_computed_again(make_toy, base_model, tmp_path):
    cache = tmp_path / "cache"
    stage = make_toy({}, cache)
    figures = ran(stage)
    parts = known_passes(stage)[1]
    changed_entry(cache, -1, fits=False)
    assert ran(stage) == figures
    assert known_passes(stage) == (parts - 1, parts)


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_wrong_log_prob_is_found_before_the_first_step(make_toy, base_model, tmp_path, place):
    """The policy is its own reference. The check covers more than the rows of the first step, and names the row."""
    cache = tmp_path / "cache"
    stage = make_toy({}, cache, batch=4, max_steps=6)
    ran(stage)
    changed_entry(cache, place, fits=True)
    with pytest.raises(ReferenceDiffers, match=r"for row \d+, response 1 \(\d+ tokens\)"):
        ran(stage)


def test_the_check_names_the_first_row_that_differs():
    values = np.array([-3.0, -1.0], dtype=np.float32)
    rows = [
        Example(row, np.arange(2, dtype=np.int32), example().responses, frozen_log_probs={"reference": values})
        for row in (4, 9)
    ]
    check_equal([values, values + 1e-5], rows, "reference", 1e-4)
    with pytest.raises(ReferenceDiffers, match="row 9, response 1"):
        check_equal([values, np.array([-3.01, -1.0], dtype=np.float32)], rows, "reference", 1e-4)
    with pytest.raises(ReferenceDiffers, match="row 4"):
        check_equal([np.array([np.nan, -1.0], dtype=np.float32), values], rows, "reference", 1e-4)


def test_a_run_that_stops_early_reads_the_reference_for_what_it_learns_and_evaluates_only(
    make_toy, other_model, monkeypatch
):
    """The figures are those of a run that read it for all rows."""
    read: set[int] = set()
    used: set[int] = set()
    add, prepare = LogProbCache.add, toy_pairs.ToyObjective.prepare

    def adding(self, part, values, seconds):
        read.update(example.row for example in part)
        add(self, part, values, seconds)

    def preparing(self, examples, passes):
        used.update(example.row for example in examples)
        return prepare(self, examples, passes)

    monkeypatch.setattr(LogProbCache, "add", adding)
    monkeypatch.setattr(toy_pairs.ToyObjective, "prepare", preparing)
    short = ran(make_toy({"reference": other_model}, max_steps=2))
    assert read == used
    reached = len(read)
    monkeypatch.setattr(ListSource, "drawn", lambda self, steps=None: None)
    whole = ran(make_toy({"reference": other_model}, max_steps=2))
    assert len(read) > 1.5 * reached
    for step, values in whole.items():
        figures = {name: values[name] for name in values if name in ("loss", "margin", "z", "eval_loss", "grad_norm")}
        assert {name: short[step][name] for name in figures} == pytest.approx(figures, rel=1e-3, abs=1e-4)


def test_runs_that_stop_after_different_steps_have_passes_of_the_reference_in_common(
    make_toy, other_model, monkeypatch, tmp_path
):
    monkeypatch.setattr(frozen, "BLOCK", 8)
    ran(make_toy({"reference": other_model}, tmp_path / "cache", max_steps=2))
    longer = make_toy({"reference": other_model}, tmp_path / "cache", max_steps=3)
    ran(longer)
    known, parts = known_passes(longer)
    assert 0.5 * parts < known < parts


def test_the_rows_of_the_first_step_and_a_few_of_all_are_checked_before_it(make_toy, monkeypatch):
    """Evenly, so that a fault in a part of the data is met; in few passes, however many rows there are."""
    monkeypatch.setattr(frozen, "CHECKED", 10)
    checked: list[int] = []
    learned: list[list[int]] = []
    check, make = frozen.check_equal, Update.make

    def checking(policy, examples, name, bound):
        checked.extend(example.row for example in examples)
        check(policy, examples, name, bound)

    def making(self, examples, *others):
        learned.append([example.row for example in examples])
        return make(self, examples, *others)

    monkeypatch.setattr(frozen, "check_equal", checking)
    monkeypatch.setattr(Update, "make", making)
    ran(make_toy({}, max_steps=None, epochs=1))
    first, later = set(learned[0]), {row for rows in learned[1:] for row in rows}
    assert first <= set(checked)
    assert len(first) + 15 < len(checked) <= len(first) + 20
    # Rows are in the order of the file, 100 to learn from and 8 that are held out.
    spread = sorted(set(checked) & later)
    assert spread[0] < 20
    assert spread[-1] > 100
    assert max(after - before for before, after in itertools.pairwise(spread)) < 40
