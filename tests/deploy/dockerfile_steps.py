"""A Dockerfile without a container engine: its steps read, and carried out below a folder that stands for the root.

What that shows: each COPY finds its files in the context and in earlier stages, each RUN works with what the steps
before it made, and what results starts as ENV and CMD say. What it cannot show: the base images (this machine's Python
and Node take their place), users, and steps of apt, which are left out.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# Absolute places that steps name, all made by the build itself.
_PLACES = re.compile(r"(?<![\w/.])/(opt|src|wheels|tmp)(?=[/\s\"'*;)]|$)")


@dataclass
class Step:
    instruction: str
    rest: str


@dataclass
class Stage:
    base: str
    name: str
    steps: list[Step] = field(default_factory=list)

    def of(self, instruction: str) -> list[str]:
        return [step.rest for step in self.steps if step.instruction == instruction]


@dataclass
class Dockerfile:
    """`arguments`: those before the first stage, with their defaults."""

    arguments: dict[str, str]
    stages: dict[str, Stage]

    @classmethod
    def read(cls, path: Path) -> Dockerfile:
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
        dockerfile = cls({}, {})
        stage: Stage | None = None
        for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
            if not line.strip():
                continue
            instruction, _, rest = line.strip().partition(" ")
            rest = rest.strip()
            if instruction == "FROM":
                base, _, name = rest.partition(" AS ")
                for argument, value in dockerfile.arguments.items():
                    base = base.replace(f"${{{argument}}}", value)
                stage = dockerfile.stages[name] = Stage(base, name)
            elif stage is None:
                assert instruction == "ARG", line
                name, _, value = rest.partition("=")
                dockerfile.arguments[name] = value
            else:
                stage.steps.append(Step(instruction, rest))
        return dockerfile

    def lineage(self, target: str) -> list[Stage]:
        """The stages that `target` is made from directly, the oldest first, and itself."""
        stage = self.stages[target]
        return [*(self.lineage(stage.base) if stage.base in self.stages else []), stage]

    def needed(self, target: str) -> list[Stage]:
        """All stages that a build of `target` runs, in the order of the file."""
        names = {stage.name for stage in self.lineage(target)}
        for stage in self.lineage(target):
            for copied in re.findall(r"--from=(\S+)", " ".join(stage.of("COPY"))):
                names |= {other.name for other in self.needed(copied)}
        return [stage for stage in self.stages.values() if stage.name in names]

    def environment(self, target: str) -> dict[str, str]:
        variables: dict[str, str] = {}
        for stage in self.lineage(target):
            for line in stage.of("ENV"):
                variables |= dict(pair.split("=", 1) for pair in shlex.split(line))
        return variables

    def last(self, target: str, instruction: str) -> str:
        return [rest for stage in self.lineage(target) for rest in stage.of(instruction)][-1]


def make_context(checkout: Path, target: Path) -> None:
    """What the engine would be sent: files that git knows or would add, less those that .dockerignore leaves out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=checkout, capture_output=True
    )
    assert listed.returncode == 0, listed.stderr
    patterns = [line for line in (checkout / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    for name in filter(None, listed.stdout.decode().split("\0")):
        source = checkout / name
        if source.is_file() and not is_ignored(name, patterns):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def is_ignored(name: str, patterns: list[str]) -> bool:
    """The last pattern that fits the file, or a folder that it is in, decides."""
    ignored = False
    folders = [str(part) for part in (PurePosixPath(name), *PurePosixPath(name).parents)][:-1]
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        shapes = [plain, plain.removeprefix("**/")]
        if any(fnmatch.fnmatchcase(folder, shape) for folder in folders for shape in shapes):
            ignored = not pattern.startswith("!")
    return ignored


@dataclass
class Build:
    """`root` stands for / of all stages, which use different places of it."""

    dockerfile: Dockerfile
    context: Path
    root: Path
    left_out: list[str] = field(default_factory=list)

    def run(self, target: str) -> None:
        for stage in self.dockerfile.needed(target):
            folder = self.root
            variables: dict[str, str] = {}
            for step in stage.steps:
                match step.instruction:
                    case "WORKDIR":
                        folder = self.root / step.rest.lstrip("/")
                        folder.mkdir(parents=True, exist_ok=True)
                    case "ARG":
                        name, _, value = step.rest.partition("=")
                        variables[name] = value
                    case "COPY":
                        self._copy(step.rest, folder)
                    case "RUN":
                        self._run(step.rest, folder, variables)

    def place(self, text: str) -> str:
        """Absolute places of the image as places below the root."""
        return _PLACES.sub(lambda match: f"{self.root}{match.group()}", text)

    def _copy(self, rest: str, folder: Path) -> None:
        *options, sources, target = _split_copy(rest)
        base = self.root if options else self.context
        for source in sources.split("\0"):
            origin = base / source.lstrip("/")
            destination = self.root / target.lstrip("/") if target.startswith("/") else folder / target
            assert origin.exists(), f"COPY of {source}, which is not there"
            if origin.resolve() == destination.resolve():
                continue
            if origin.is_dir():
                shutil.copytree(origin, destination, dirs_exist_ok=True)
            else:
                into = destination / origin.name if target.endswith("/") else destination
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin, into)

    def _run(self, command: str, folder: Path, variables: dict[str, str]) -> None:
        if command.startswith("apt-get"):
            self.left_out.append(command)
            return
        python = Path(sys.executable).resolve().parent
        environment = {
            "PATH": f"{python}{os.pathsep}{_without_venv()}",
            "HOME": str(self.root),
            **{name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "npm_config_", "SSL_"))},
            **variables,
        }
        done = subprocess.run(
            ["bash", "-eu", "-c", self.place(command)], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"RUN {command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def _split_copy(rest: str) -> list[str]:
    words = shlex.split(rest)
    options = [word for word in words if word.startswith("--")]
    *sources, target = [word for word in words if not word.startswith("--")]
    return [*options, "\0".join(sources), target]


def _without_venv() -> str:
    own = os.environ.get("VIRTUAL_ENV", sys.prefix)
    return os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not part.startswith(own))


def exec_form(text: str) -> list[str]:
    """The words of `CMD ["a", "b"]`, which runs without a shell."""
    words: list[str] = json.loads(text[text.index("[") :])
    return words
