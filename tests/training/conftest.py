"""A tiny random base model and small datasets, written once; stages run in this process or as real processes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
import toy_pairs
from running import RecordingWriter, changed_weights

from steerboard_contracts import methods
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training import passes

_TEXT = "bread flour water salt yeast oven cake sugar butter eggs sky blue light short waves scatter bake mix"
WORDS = tuple(_TEXT.split())


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Fixtures of a module have one thread, too: results depend on the number of threads on some processors."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def sentence(draw: random.Random, low: int, high: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(low, high))) + "."


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory) -> Path:
    """labelled.jsonl (longer answers have higher rewards), preferences.jsonl (the longer answer is chosen),
    unpaired.jsonl (longer answers are desirable) and stepwise.jsonl (the longer step is right)."""
    folder = tmp_path_factory.mktemp("data")
    draw = random.Random(0)
    labelled, pairs = [], []
    for row in range(120):
        prompt = [{"role": "user", "content": sentence(draw, 2, 12)}]
        if row % 4 == 0:
            earlier = [{"role": "user", "content": sentence(draw, 2, 5)}]
            prompt = [*earlier, {"role": "assistant", "content": sentence(draw, 1, 6)}, *prompt]
        place = {"row": row, "split": "held_out" if row % 6 == 0 else "train", "half": "ab"[row % 2]}
        good, bad = sentence(draw, 8, 14), sentence(draw, 1, 5)
        kind = row % 3
        response = good if kind == 0 else bad
        reward = len(response.split()) + draw.gauss(0, 0.3)
        source = ("generated", "instructions", "preferences.chosen")[kind]
        labelled.append({"prompt": prompt, "response": response, "source": source, "reward": reward, **place})
        pairs.append({"prompt": prompt, "chosen": good, "rejected": bad, **place})
    names = ("prompt", "response", "row", "split", "half")
    unpaired = [{name: row[name] for name in names} | {"desirable": row["reward"] > 6} for row in labelled]
    stepwise = []
    for row in pairs:
        steps = [(row["chosen"], True), (row["rejected"], False)][:: 1 if row["row"] // 2 % 2 else -1]
        placed = {name: row[name] for name in names if name != "response"}
        stepwise.append({**placed, "completions": [s for s, _ in steps], "labels": [right for _, right in steps]})
    kinds = {"labelled": labelled, "preferences": pairs, "unpaired": unpaired, "stepwise": stepwise}
    for name, rows in kinds.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="session")
def learned_by_heart(tmp_path_factory) -> Path:
    """Rows whose held-out answers are other ones than those to learn: longer training makes them less likely."""
    rows = [
        {
            "prompt": [{"role": "user", "content": f"bread {row}"}],
            "response": "oven bread" if row % 4 == 0 else "cake sugar",
            "source": "generated",
            "reward": float(row % 3),
            "row": row,
            "half": "a",
            "split": "held_out" if row % 4 == 0 else "train",
        }
        for row in range(64)
    ]
    path = tmp_path_factory.mktemp("by-heart") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def make_stage(data_folder, tmp_path_factory):
    """make_stage(config, model=..., data="labelled", folder=None) -> a Stage with its stage.json on disk."""

    def make(
        config: dict, model: Path | None = None, data: str | None = "labelled", folder: Path | None = None, **spec
    ):
        folder = folder or tmp_path_factory.mktemp("stage")
        inputs = {}
        if model is not None:
            inputs["model"] = {"type": "model", "name": "start", "path": str(model), "content_hash": "m"}
        if data is not None:
            kind = data if data in ("preferences", "unpaired", "stepwise") else "labelled"
            path = data_folder / f"{data}.jsonl" if "/" not in data else Path(data)
            name = "data.0" if config["run"] == "base" else "data"
            inputs[name] = {
                "type": "dataset",
                "name": "d",
                "path": str(path),
                "kind": kind,
                "rows": 0,
                "content_hash": "d",
            }
        written = StageSpec.model_validate(
            {"run_id": "r", "name": "test", "config": config, "inputs": inputs, "device": "cpu", "threads": 1} | spec
        )
        (folder / STAGE_FILE).write_text(written.model_dump_json())
        return Stage(folder, written, RecordingWriter())

    return make


@pytest.fixture(scope="session")
def base_model(make_stage) -> Path:
    return random_base(make_stage, hidden=48, heads=2)


@pytest.fixture(scope="session")
def wide_model(make_stage) -> Path:
    """Its matrices are large enough for ZeRO-3 to spread them (a smaller one's stay whole on each process), and their
    widths are multiples of 64, as kernels of 4-bit weights want them."""
    return random_base(make_stage, hidden=192, heads=6)


@pytest.fixture(scope="session")
def foreign_model(make_stage) -> Path:
    """Another tokenizer than that of `base_model`."""
    return random_base(make_stage, hidden=32, heads=2, vocabulary=320)


def random_base(make_stage, **shape: int) -> Path:
    from steerboard_workers.stages import base

    config = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "layers": 2, "max_length": 128}
    stage = make_stage({**config, **shape})
    base.run(stage)
    return stage.directory / "outputs" / "model"


@pytest.fixture(scope="session")
def other_model(base_model, tmp_path_factory) -> Path:
    """Another one of the family of `base_model`."""
    return changed_weights(base_model, tmp_path_factory.mktemp("other") / "model", 0.05)


@pytest.fixture
def make_toy(make_stage, base_model, monkeypatch):
    """make_toy(frozen={"reference": PATH}, cache=FOLDER, **config) -> a Stage of the method of `toy_pairs`."""
    known = methods._loaded()
    loaded = methods._Loaded({**known.methods, "toy": toy_pairs.SPEC, "toy_critic": toy_pairs.CRITIC}, ())
    monkeypatch.setattr(methods, "_loaded", lambda: loaded)
    monkeypatch.setattr(passes, "PASS_TOKENS", 512)  # so that small data takes several
    quick = {
        "batch": 8,
        "epochs": 3,
        "max_steps": 3,
        "lr": 1e-3,
        "max_length": 96,
        "checkpoint_every": 0,
        "evaluate_rows": 8,
    }

    def make(frozen=None, cache: Path | None = None, model: Path = base_model, method: str = "toy", **config) -> Stage:
        data = "preferences" if method == "toy" else "labelled"
        stage = make_stage({"run": "train", "method": "sft"}, model=model, data=data)
        inputs = dict(stage.spec.inputs)
        for name, path in (frozen or {}).items():
            inputs[name] = ModelInput(name=name, path=str(path), content_hash="f")
        own = loaded.methods[method].config(method=method, **{**quick, **config})
        changes = {"config": own, "inputs": inputs, "caches": {"reference": str(cache)} if cache else {}}
        # This process has read its methods already; one that is started with `toy_package` finds this one, too.
        spec = StageSpec.model_construct(**{**dict(stage.spec), **changes})
        written = stage.spec.model_dump(mode="json") | {"config": own.model_dump(mode="json")}
        written["inputs"] = {name: item.model_dump(mode="json") for name, item in inputs.items()}
        (stage.directory / STAGE_FILE).write_text(json.dumps(written))
        return Stage(stage.directory, spec, stage._events)

    return make


@pytest.fixture(scope="session")
def toy_package(tmp_path_factory) -> dict[str, str]:
    """The environment of a process in which the method of `toy_pairs` is installed."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "toy_pairs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-pairs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[steerboard.methods]\ntoy = toy_pairs:SPEC\ntoy_critic = toy_pairs:CRITIC\n"
    )
    return {"PYTHONPATH": f"{folder}:{Path(__file__).parent}"}
