"""No command of the docs stays untried: a test runs every shell block, or a reason is given here why none can."""

from __future__ import annotations

import ast
from pathlib import Path

import page_blocks
import pytest
import test_data_stories
import test_evaluation_stories
import test_training_stories
from page_blocks import ROOT, Block, Named, blocks_of, shell_blocks

STORIES = (test_data_stories, test_evaluation_stories, test_training_stories)
ELSEWHERE = {
    Named("agents.md", kind="sh"): "tests/api/agents/test_agents_page.py::test_the_blocks_of_the_page_start_the_server",
    Named("api.md", kind="sh"): "tests/api/test_api_docs.py::test_the_commands_of_the_api_page_do_what_it_says",
    Named(
        "ci.md", kind="sh"
    ): "tests/gate/test_ci_story.py::test_the_job_of_the_page_runs_from_the_token_to_the_verdict",
    Named(
        "figures.md", "python -c"
    ): "tests/figures/test_figures_page.py::test_the_example_of_the_page_prints_what_the_page_shows",
    Named(
        "maintenance.md", "steerboard "
    ): "tests/maintenance/test_maintenance_commands.py::test_the_documented_commands_do_what_they_say",
    **{
        Named(
            "take-your-model.md", begin
        ): "tests/publishing/test_gguf_exports.py::test_the_commands_of_the_page_write_what_it_says"
        for begin in ("steerboard models export dt dt ", "steerboard models export dt dt-gguf")
    },
    **{
        Named(
            "take-your-model.md", begin
        ): "tests/publishing/test_take_your_model.py::test_the_commands_of_the_page_push_and_pull_a_model_and_a_dataset"
        for begin in ("steerboard hub-token set", "steerboard models fit")
    },
    Named(
        "methods.md", kind="indented"
    ): "tests/methods/test_own_method.py::test_the_commands_of_the_page_install_it_and_train_by_it",
}
_EIGHT_GPUS = "needs eight GPUs, and never ends; tests/cli/test_worker_command.py and tests/faults start workers"
_MACHINES = "needs several machines; tests/faults/workers/test_nodes.py starts such workers on one"
_CONTAINERS = "needs Docker or Kubernetes; tests/deploy renders and runs what they would"
_INSTALLS = "installs gigabytes into the checkout that runs the tests"
_SERVES = "never ends; tests/playground/test_vllm_server.py serves by vLLM"
NOT_RUN = {
    Named("agents.md", "make setup-mcp"): _INSTALLS,
    Named("README.md", "make demo"): "would run this suite in itself; tests/e2e/pipelines/test_demo.py runs the demo",
    Named(
        "demo-real.md", "make demo-real"
    ): "trains a real model for an hour; tests/e2e/pipelines/test_demo_real.py runs it with a tiny one",
    Named("deploy.md", "deploy/compose/new-env"): _CONTAINERS,
    Named("deploy.md", "deploy/compose/walk"): _CONTAINERS,
    Named("deploy.md", "kubectl"): _CONTAINERS,
    Named("engines.md", "make setup-vllm"): _INSTALLS,
    Named("engines.md", "steerboard models serve demo-1.dt --port 8001\n"): _SERVES,
    Named("engines.md", "steerboard models serve demo-1.dt --port 8001 --guidance"): _SERVES,
    Named("getting-started.md", "source .venv/bin/activate\nsteerboard up "): "never ends; the fixture `up` starts it",
    Named("getting-started.md", "make clean"): _INSTALLS,
    Named("python.md", "pip install ./client"): _INSTALLS,
    Named(
        "models.md", "steerboard models fit"
    ): "needs the hub; tests/cli/test_fit_command.py asks one on this machine",
    Named(
        "models.md", "steerboard models import ./quantised"
    ): "needs files of the hub; tests/training/test_gguf.py and tests/cli/test_model_uploads.py bring such files in",
    Named("runs.md", "steerboard worker"): _EIGHT_GPUS,
    Named("training.md", "steerboard worker --pool large --devices 0-7\n"): _EIGHT_GPUS,
    Named("training.md", "steerboard worker --pool large --devices 0-7 --nodes"): _MACHINES,
}


def run_by_stories() -> set[Named]:
    marks = [mark for story in STORIES for test in vars(story).values() for mark in getattr(test, "pytestmark", ())]
    return {named for mark in marks if mark.args and mark.args[0] == "blocks" for named in mark.args[1][0]}


def unaccounted(blocks: list[Block]) -> list[str]:
    known = run_by_stories() | ELSEWHERE.keys() | NOT_RUN.keys()
    counts = [(block, sum(named.means(block) for named in known)) for block in blocks]
    return [f"{block.place}: {count or 'no'} test or reason for: {block.text}" for block, count in counts if count != 1]


def test_every_shell_block_of_the_docs_is_run_or_has_one_reason_why_not() -> None:
    assert unaccounted(shell_blocks()) == []
    unused = [
        named
        for named in (run_by_stories() | ELSEWHERE.keys() | NOT_RUN.keys())
        if not any(named.means(block) for block in shell_blocks())
    ]
    assert unused == []


@pytest.mark.parametrize("named", ELSEWHERE.values())
def test_a_test_elsewhere_that_runs_blocks_is_there(named: str) -> None:
    path, _, test = named.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


NEW = """Text.

```sh
steerboard datasets clean other
```

```yaml
run: steerboard
```

    make nothing

    stages: {}

- in a list

  ```
  docker ps
  ```
"""


def test_a_new_or_changed_block_is_found_with_its_page_and_line(tmp_path: Path) -> None:
    page = tmp_path / "cleaning.md"
    page.write_text(NEW)
    places = [place.split(" ")[0] for place in unaccounted(list(blocks_of(page)))]
    assert places == ["cleaning.md:4:", "cleaning.md:11:", "cleaning.md:18:"]


def test_a_block_is_taken_as_the_page_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    steerboard gc\n\n    steerboard gc --dry-run\n")
    monkeypatch.setattr(page_blocks, "PAGES", (page,))
    assert Named("page.md", "steerboard gc --").text == "steerboard gc --dry-run\n"
    with pytest.raises(LookupError, match="2 shell blocks"):
        assert Named("page.md", "steerboard gc").text
