"""Models and datasets reach a hub in one commit, whatever happens on the way; the hub is a server on this machine."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
import torch
from hand_pipeline import HandPipeline, killed_when
from safetensors.torch import load_file

from steerboard_contracts.network.hub_errors import HubBusy, hub_push_errors
from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_contracts.stage.inputs import DatasetInput, ModelInput
from steerboard_workers.stages.models.model_io import load_policy
from support.servers.hub_server import point_at
from support.servers.push_hub import READS, WRITES, Repository, push_hub

CARD = "---\ntags:\n- steerboard\n---\n# dt\n"
PUSH = {"run": "push", "repo": "lab/dt", "card": CARD}
MODEL = ("model", "lab/dt")


@pytest.fixture
def hub(monkeypatch):
    with push_hub() as made:
        point_at(made.url, monkeypatch)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
        monkeypatch.setenv("HF_TOKEN", WRITES)
        yield made


def push(pipeline, config=PUSH, name="push", model="dt"):
    return pipeline.run(name, config, {"model": model})


@pytest.fixture
def pushed(pipeline, monkeypatch):
    """Runs a push; what it makes is no thing of the pipeline."""
    monkeypatch.setattr(HandPipeline, "_keep", lambda *_: None)
    return lambda config=PUSH, name="push", model="dt": push(pipeline, config, name, model)


def own_files(pipeline, name="dt"):
    folder = Path(pipeline.things[name].path)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_hub_that_does_not_speak_xet_gets_large_files_by_lfs(hub, pushed):
    assert importlib.util.find_spec("hf_xet"), "which huggingface_hub would use wherever it is installed"
    done = pushed()
    assert isinstance(done.last, Succeeded), done.last
    assert hub.xet_asked == ["lab/dt"]
    assert hub.stored
    assert any("large ones by LFS" in event.message for event in done.events if event.type == "log")


def test_a_xet_store_that_does_not_answer_is_a_hub_that_does_not():
    with pytest.raises(HubBusy, match="does not answer"), hub_push_errors("lab/dt", WRITES):
        raise ConnectionError("Network error: as hf_xet raises it")


def test_xet_can_be_switched_off(hub, pushed, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    assert isinstance(pushed().last, Succeeded)
    assert hub.xet_asked == []


def test_a_push_is_one_commit_of_a_private_repository_with_the_models_files_and_its_card(hub, pipeline, pushed):
    done = pushed().last
    assert isinstance(done, Succeeded), done
    repository = hub.repositories[MODEL]
    assert repository.private
    ((commit, files),) = repository.commits
    assert files == {**own_files(pipeline), "README.md": CARD.encode()}
    assert done.summary["commit"] == commit
    assert done.summary["url"] == f"{hub.url}/lab/dt"
    assert done.summary["private"] is True


def test_what_was_pushed_comes_back_by_its_name_and_answers_alike(hub, pipeline, pushed, monkeypatch, tmp_path):
    pushed()
    monkeypatch.undo()
    point_at(hub.url, monkeypatch)
    monkeypatch.setenv("HF_TOKEN", READS)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    back = pipeline.run("back", {"run": "base", "source": "lab/dt"}, {})
    assert isinstance(back.last, Succeeded), back.last
    ours, theirs = (load_policy(pipeline.things[name].path) for name in ("dt", "back"))
    assert theirs.info.condition == ours.info.condition
    assert theirs.info.role == "policy"
    for name, tensor in ours.model.state_dict().items():
        assert torch.equal(tensor, theirs.model.state_dict()[name])


def test_an_equal_push_sends_nothing_and_makes_no_commit(hub, pushed):
    first = pushed().last
    sent = list(hub.stored)
    again = pushed(name="again").last
    assert again.summary["commit"] == first.summary["commit"]
    assert len(hub.repositories[MODEL].commits) == 1
    assert hub.stored == sent


@pytest.mark.parametrize("place", ["repos/create", "/preupload/", "/lfs/", "/commit/", "committed"])
def test_a_push_that_was_killed_is_finished_by_the_next_without_doubling_anything(place, hub, pipeline, pushed):
    hub.hold = place
    killed_when(hub.held.is_set, pipeline.prepare("push", PUSH, {"model": "dt"}))
    hub.hold = None
    hub.release.set()
    done = pushed(name="next").last
    assert isinstance(done, Succeeded), done
    repository = hub.repositories[MODEL]
    assert repository.files() == {**own_files(pipeline), "README.md": CARD.encode()}
    assert len(hub.stored) == len(set(hub.stored))
    assert len(repository.commits) == 1


def test_files_of_a_former_push_that_the_new_one_lacks_are_gone_and_others_stay(hub, pushed):
    hub.repositories[MODEL] = Repository(
        private=True,
        commits=[
            ("a" * 40, {"README.md": CARD.encode(), "model-00001-of-00002.safetensors": b"old", "picture.png": b"p"})
        ],
    )
    pushed()
    files = hub.repositories[MODEL].files()
    assert "model-00001-of-00002.safetensors" not in files
    assert files["picture.png"] == b"p"


@pytest.mark.parametrize(
    ("repository", "code"),
    [
        (Repository(private=False), "hub_repo_public"),
        (Repository(private=True, commits=[("a" * 40, {"thesis.tex": b"x"})]), "hub_repo_taken"),
    ],
)
def test_a_repository_that_would_reveal_or_replace_something_is_refused_untouched(repository, code, hub, pushed):
    hub.repositories[MODEL] = repository
    before = list(repository.commits)
    refused = pushed().last
    assert isinstance(refused, Failed)
    assert refused.code == code
    assert refused.hint
    assert repository.commits == before
    assert hub.stored == []


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, "hub_unauthorised", False),
        (403, "hub_forbidden", False),
        (404, "hub_not_found", False),
        (409, "hub_conflict", True),
        (412, "hub_conflict", True),
        (429, "hub_rate_limited", True),
        (400, "hub_refused", False),
        (507, "hub_unavailable", True),
    ],
)
def test_what_the_hub_answers_a_commit_with_has_a_code_of_its_own(status, code, retryable, hub, pushed):
    hub.refuse["/commit/"] = status
    failed = pushed().last
    assert isinstance(failed, Failed)
    assert (failed.code, failed.retryable) == (code, retryable)
    assert hub.repositories[MODEL].commits == []


def test_an_upload_that_fails_is_told_by_its_status(hub, pushed):
    hub.refuse["/lfs/"] = 403
    assert pushed().last.code == "hub_forbidden"


def test_a_wrong_token_is_named_and_never_shown(hub, pushed, monkeypatch, capfd):
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_someone")
    result = pushed()
    assert result.last.code == "hub_unauthorised"
    said = capfd.readouterr()
    assert "hf_secret" not in said.out + said.err + (result.directory / "events.jsonl").read_text()
    assert "***" in result.last.detail


def test_without_a_token_the_error_says_where_one_is_set(hub, pushed, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    failed = pushed().last
    assert failed.code == "hub_token_missing"
    assert "settings" in failed.hint


def test_a_hub_that_is_not_there_is_worth_another_attempt(pushed, monkeypatch):
    point_at("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setenv("HF_TOKEN", WRITES)
    failed = pushed().last
    assert (failed.code, failed.retryable) == ("hub_unavailable", True)


@pytest.fixture(scope="session")
def adapter(foundation):
    """A LoRA model over `sft`."""
    if "lora" not in foundation.things:
        lora = {"rank": 4, "alpha": 64, "merge": False}
        config = {"run": "train", "method": "sft", "batch": 16, "max_steps": 6, "lr": 3e-2, "lora": lora}
        made = foundation.run("lora", config, {"model": "sft", "data": "$instructions"})
        assert isinstance(made.last, Succeeded), made.last
    return foundation.things["lora"]


def test_an_adapter_is_merged_into_what_it_was_trained_on(hub, adapter, pipeline, pushed, tmp_path):
    pipeline.things["lora"] = adapter
    assert isinstance(pushed(model="lora").last, Succeeded)
    files = hub.repositories[MODEL].files()
    assert not [path for path in files if path.startswith(("adapter", "base/"))]
    info = json.loads(files["steerboard.json"])
    assert info["lora"] is None
    for path, content in files.items():
        (tmp_path / "back" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "back" / path).write_bytes(content)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        ours = load_policy(adapter.path, "fp32").model(ids).logits
        merged = load_policy(tmp_path / "back", "fp32").model(ids).logits
        below = load_policy(Path(adapter.path) / "base", "fp32").model(ids).logits
    torch.testing.assert_close(merged, ours, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(merged, below, atol=1e-3)


def test_an_adapter_alone_names_its_base_on_the_hub_and_leaves_it_out(hub, adapter, pipeline, pushed):
    pipeline.things["lora"] = adapter
    done = pushed({**PUSH, "weights": "adapter", "base": "lab/sft@abc"}, model="lora").last
    assert isinstance(done, Succeeded), done
    files = hub.repositories[MODEL].files()
    settings = json.loads(files["adapter_config.json"])
    assert (settings["base_model_name_or_path"], settings["revision"]) == ("lab/sft", "abc")
    assert not [path for path in files if path.startswith("base/")]
    weights = load_file(Path(adapter.path) / "adapter_model.safetensors")
    assert set(files) >= {"adapter_model.safetensors", "tokenizer.json", "config.json"}
    assert weights


def test_a_dataset_is_pushed_with_its_files_by_split(hub, pipeline, pushed, tmp_path):
    (tmp_path / "export" / "data").mkdir(parents=True)
    (tmp_path / "export" / "data" / "train-00000-of-00001.parquet").write_bytes(b"PAR1rowsPAR1")
    pipeline.things["rows"] = DatasetInput(
        name="rows", path=str(tmp_path / "export"), kind="prompts", rows=1, content_hash="h"
    )
    done = pipeline.run("push", {**PUSH, "repo": "lab/rows"}, {"data": "rows"}).last
    assert isinstance(done, Succeeded), done
    assert done.summary["url"] == f"{hub.url}/datasets/lab/rows"
    files = hub.repositories["dataset", "lab/rows"].files()
    assert set(files) == {"README.md", "data/train-00000-of-00001.parquet"}


def test_a_model_card_of_the_folder_gives_way_to_the_pushed_one(hub, pipeline, pushed, tmp_path):
    shutil.copytree(pipeline.things["dt"].path, tmp_path / "with-card")
    (tmp_path / "with-card" / "README.md").write_text("# another")
    pipeline.things["dt"] = ModelInput(name="dt", path=str(tmp_path / "with-card"), content_hash="h")
    pushed()
    assert hub.repositories[MODEL].files()["README.md"] == CARD.encode()
