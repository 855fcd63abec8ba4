"""What a finished run kept of some of its pairs at each evaluation, out of the artifact store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.lookup import owner_of
from steerboard.datasets.queries import sample_out
from steerboard.datasets.schemas import SampleOut
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.http.errors import NotFound
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Artifact
from steerboard.runs import inputs
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.samples import Split
from steerboard_contracts.watching.inspected_pairs import INDEX_FILE, PairsIndex, StepPairs, step_file


class RunPairs(BaseModel):
    """Which pairs were inspected, and at which steps. `compared_with`: what log-ratios are relative to, the reference
    or the model that training started from; null where there are rewards only."""

    dataset: str
    compared_with: Literal["reference", "start"] | None
    steps: list[int]
    held_out: int
    train: int


class PairMargin(BaseModel):
    """`margin`: the reward of the chosen answer less that of the rejected one."""

    row: int
    split: Split
    chosen_reward: float
    rejected_reward: float
    margin: float


class TokenRatio(BaseModel):
    """`log_ratio`: log-prob of the token less what it was compared with, in nats."""

    text: str
    log_ratio: float


class PairRead(PairMargin):
    """With both answers, and the log-ratios of their first tokens."""

    sample: SampleOut = Field(description="The row of the dataset.")
    chosen: list[TokenRatio]
    rejected: list[TokenRatio]


class InspectedPairs:
    """Of one run. Raises `NotFound` for one that has inspected no pairs."""

    def __init__(self, session: Session, store: ArtifactStore, run: Run) -> None:
        found = select(RunOutput).where(RunOutput.run_id == run.id, RunOutput.type == "pairs")
        output = session.scalar(found)
        if output is None or output.artifact_hash is None:
            raise NotFound(
                f"run {run.name} has no inspected pairs",
                hint="A run that learns from pairs has them when it has succeeded, unless its `inspect_pairs` is 0.",
            )
        artifact = session.get_one(Artifact, output.artifact_hash)
        self._session = session
        self._store = store
        self._files = {file["path"]: file["sha256"] for file in artifact.manifest["files"]}
        data = inputs.resolve(session, run)["data"]
        assert isinstance(data, Dataset)
        self.dataset = data
        self.index = PairsIndex.model_validate_json(self._read(INDEX_FILE))

    def about(self) -> RunPairs:
        held_out = sum(pair.split == "held_out" for pair in self.index.pairs)
        return RunPairs(
            dataset=self.dataset.name,
            compared_with=self.index.compared_with,
            steps=self.index.steps,
            held_out=held_out,
            train=len(self.index.pairs) - held_out,
        )

    def margins(self, step: int) -> list[PairMargin]:
        """Of all inspected pairs, smallest first. Raises `NotFound` for a step that was not evaluated."""
        found = self._step(step)
        sides = zip(self.index.pairs, found.chosen_rewards, found.rejected_rewards, strict=True)
        margins = [
            PairMargin(
                row=pair.row, split=pair.split, chosen_reward=chosen, rejected_reward=rejected, margin=chosen - rejected
            )
            for pair, chosen, rejected in sides
        ]
        return sorted(margins, key=lambda one: (one.margin, one.row))

    def read(self, step: int, rows: Sequence[int]) -> list[PairRead]:
        """Pairs by their rows, in the order of their margins; rows that were not inspected are left out."""
        found, wanted = self._step(step), set(rows)
        places = {pair.row: place for place, pair in enumerate(self.index.pairs) if pair.row in wanted}
        samples = self._samples(sorted(places))
        read = []
        for margin in self.margins(step):
            if margin.row not in places:
                continue
            place = places[margin.row]
            pair = self.index.pairs[place]
            read.append(
                PairRead(
                    **margin.model_dump(),
                    sample=samples[margin.row],
                    chosen=_tokens(pair.chosen, found.chosen_log_ratios[place]),
                    rejected=_tokens(pair.rejected, found.rejected_log_ratios[place]),
                )
            )
        return read

    def _samples(self, rows: Sequence[int]) -> dict[int, SampleOut]:
        mine = select(SampleRow).where(SampleRow.dataset_id == owner_of(self.dataset), SampleRow.row.in_(rows))
        return {one.row: sample_out(one, None, whole=False) for one in self._session.scalars(mine)}

    def _step(self, step: int) -> StepPairs:
        if step not in self.index.steps:
            steps = ", ".join(map(str, self.index.steps))
            raise NotFound(f"no pairs were kept of step {step}", hint=f"There are those of steps {steps}.")
        return StepPairs.model_validate_json(self._read(step_file(step)))

    def _read(self, name: str) -> bytes:
        return b"".join(self._store.read(self._files[name]))


def _tokens(texts: Sequence[str], ratios: Sequence[float]) -> list[TokenRatio]:
    """Empty where the method gives rewards only."""
    return [TokenRatio(text=text, log_ratio=ratio) for text, ratio in zip(texts, ratios, strict=False)]
