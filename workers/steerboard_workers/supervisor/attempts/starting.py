"""The process that does a run's work: by which Python, with which devices, memory and environment."""

from __future__ import annotations

from pathlib import Path

from steerboard.platform.processes import lm_eval, vllm
from steerboard.platform.settings import Settings
from steerboard.runs.tables import Run
from steerboard_workers.memory import stage_memory
from steerboard_workers.supervisor import endpoint_runs, process
from steerboard_workers.supervisor.attempts.attempt import Attempt
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.process import StageProcess
from steerboard_workers.supervisor.warm_start import StageParent

ASKING_THE_HUB = ("base", "academic", "push")


class StageStarter:
    """`parent` forks stages, where there is one."""

    def __init__(self, settings: Settings, group: DeviceGroup, parent: StageParent | None) -> None:
        self._settings = settings
        self._group = group
        self._parent = parent

    def python_of(self, run: Run) -> Path | None:
        """Another Python than the worker's, where the run needs one. Raises `EngineMissing` where it is not there."""
        # Where vLLM only samples for a training, the stage itself runs here.
        by_vllm = run.config.get("engine") == "vllm" and run.kind != "train" and not endpoint_runs.asks_elsewhere(run)
        python = vllm.require_python(self._settings) if by_vllm else None
        return lm_eval.require_python(self._settings) if run.kind == "academic" else python

    def start(self, attempt: Attempt, python: Path | None, variables: dict[str, str]) -> StageProcess:
        """`python`: the one of `python_of`; `variables`: further ones of a stage's environment."""
        claim, run, workspace = attempt.claim, attempt.run, attempt.workspace
        if endpoint_runs.asks_elsewhere(run):
            return StageProcess(
                workspace.directory,
                run_id=str(run.id),
                attempt=claim.attempt,
                threads=attempt.threads,
                # Below it there may be a harness, which loads what people bring.
                memory=stage_memory(self._settings) if run.kind == "academic" else 0,
                devices=[],
                command=endpoint_runs.command(claim, run),
                variables=self._hub_variables(run) | endpoint_runs.variables(self._settings, python),
            )
        return StageProcess(
            workspace.directory,
            run_id=str(run.id),
            attempt=claim.attempt,
            threads=attempt.threads,
            memory=stage_memory(self._settings),
            devices=self._group.devices,
            launcher=self._group.launcher(run, claim.attempt),
            command=process.stage_command(workspace.directory, python=python) if python else None,
            variables=self._variables(run, python) | variables,
            parent=self._parent,
        )

    def _variables(self, run: Run, python: Path | None) -> dict[str, str]:
        """What a stage gets besides the worker's own environment. `python`: another one than this."""
        hub = self._hub_variables(run)
        if run.kind == "academic":
            return hub | lm_eval.variables(self._settings.home)
        return hub | (vllm.variables(python, self._settings.home) if python else {})

    def _hub_variables(self, run: Run) -> dict[str, str]:
        return process.hub_variables() if run.kind in ASKING_THE_HUB else {}
