"""What a run keeps of some of its pairs, or answers with a thumb, at each evaluation: of a finished one all steps, out
of the artifact store; of another the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from steerboard.runs.tables import LivePairRow, Run, RunOutput
from steerboard_contracts.samples import Split
from steerboard_contracts.watching.inspected_pairs import INDEX_FILE, LivePair, PairsIndex, StepPairs, step_file


class RunPairs(BaseModel):
    """Which pairs were inspected, and at which steps: none before the first evaluation, only the newest until the run
    has succeeded. `compared_with`: what log-ratios are relative to, the reference or the model that training started
    from; null where there are rewards only. `of`: pairs, or single answers, each with one side: a desirable answer is
    the chosen one, an undesirable one the rejected."""

    dataset: str
    of: Literal["pairs", "answers"]
    compared_with: Literal["reference", "start"] | None
    steps: list[int]
    held_out: int
    train: int


class PairMargin(BaseModel):
    """`margin`: the reward of the chosen answer less that of the rejected one, where a missing one counts as 0. Of a
    single answer that is its log-ratio, with the other sign where it is undesirable."""

    row: int
    split: Split
    chosen_reward: float | None
    rejected_reward: float | None
    margin: float


class TokenRatio(BaseModel):
    """`log_ratio`: log-prob of the token less what it was compared with, in nats."""

    text: str
    log_ratio: float


class PairRead(PairMargin):
    """A pair with both answers, and the log-ratios of their first tokens."""

    sample: SampleOut = Field(description="The row of the dataset.")
    chosen: list[TokenRatio]
    rejected: list[TokenRatio]


class InspectedPairs:
    """The inspected pairs of one run. Raises `NotFound` for one that inspects none, or succeeded without."""

    def __init__(self, session: Session, store: ArtifactStore, run: Run) -> None:
        query = select(RunOutput).where(RunOutput.run_id == run.id, RunOutput.type == "pairs")
        output = session.scalar(query)
        self._session = session
        self._step_of: Callable[[int], StepPairs]
        if output is not None and output.artifact_hash is not None:
            kept = _Kept(store, session.get_one(Artifact, output.artifact_hash))
            self.index, self._step_of = kept.index, kept.step
        elif run.config.get("inspect_pairs") and run.state != "succeeded":
            newest = _Newest(session, run)
            self.index, self._step_of = newest.index, newest.step
        else:
            raise NotFound(
                f"run {run.name} has no inspected pairs",
                hint="Only runs that learn from pairs or thumbs have them, unless their `inspect_pairs` is 0.",
            )
        data = inputs.resolve(session, run)["data"]
        assert isinstance(data, Dataset)
        self.dataset = data

    def about(self) -> RunPairs:
        held_out = sum(pair.split == "held_out" for pair in self.index.pairs)
        single = any(pair.chosen is None or pair.rejected is None for pair in self.index.pairs)
        return RunPairs(
            dataset=self.dataset.name,
            of="answers" if single else "pairs",
            compared_with=self.index.compared_with,
            steps=self.index.steps,
            held_out=held_out,
            train=len(self.index.pairs) - held_out,
        )

    def margins(self, step: int) -> list[PairMargin]:
        """The margins of all inspected pairs, smallest first. Raises `NotFound` for a step that was not evaluated."""
        return [margin for _, margin in self._placed(step)]

    def _placed(self, step: int) -> list[tuple[int, PairMargin]]:
        """The pairs with their places in the index: a row of a pair may be two answers."""
        at_step = self._step(step)
        sides = zip(self.index.pairs, at_step.chosen_rewards, at_step.rejected_rewards, strict=True)
        margins = [
            PairMargin(
                row=pair.row,
                split=pair.split,
                chosen_reward=chosen,
                rejected_reward=rejected,
                margin=(chosen or 0.0) - (rejected or 0.0),
            )
            for pair, chosen, rejected in sides
        ]
        return sorted(enumerate(margins), key=lambda item: (item[1].margin, item[1].row))

    def read(self, step: int, rows: Sequence[int]) -> list[PairRead]:
        """Pairs by their rows, in the order of their margins; rows that were not inspected are left out."""
        at_step, wanted = self._step(step), set(rows)
        margins = [item for item in self._placed(step) if item[1].row in wanted]
        samples = self._samples(sorted({margin.row for _, margin in margins}))
        return [
            PairRead(
                **margin.model_dump(),
                sample=samples[margin.row],
                chosen=_tokens(self.index.pairs[place].chosen, at_step.chosen_log_ratios[place]),
                rejected=_tokens(self.index.pairs[place].rejected, at_step.rejected_log_ratios[place]),
            )
            for place, margin in margins
        ]

    def _samples(self, rows: Sequence[int]) -> dict[int, SampleOut]:
        query = select(SampleRow).where(SampleRow.dataset_id == owner_of(self.dataset), SampleRow.row.in_(rows))
        return {sample.row: sample_out(sample, None, whole=False) for sample in self._session.scalars(query)}

    def _step(self, step: int) -> StepPairs:
        if step not in self.index.steps:
            steps = ", ".join(map(str, self.index.steps)) or "none yet"
            raise NotFound(f"no pairs were kept of step {step}", hint=f"Pairs were kept of steps {steps}.")
        return self._step_of(step)


class _Kept:
    """The output of a finished run."""

    def __init__(self, store: ArtifactStore, artifact: Artifact) -> None:
        self._store = store
        self._files = {file["path"]: file["sha256"] for file in artifact.manifest["files"]}
        self.index = PairsIndex.model_validate_json(self._read(INDEX_FILE))

    def step(self, step: int) -> StepPairs:
        return StepPairs.model_validate_json(self._read(step_file(step)))

    def _read(self, name: str) -> bytes:
        return b"".join(self._store.read(self._files[name]))


class _Newest:
    """What an active run reported of its newest evaluation; without any, an index of no pairs and steps."""

    def __init__(self, session: Session, run: Run) -> None:
        query = select(LivePairRow).where(LivePairRow.run_id == run.id).order_by(LivePairRow.place)
        rows = session.scalars(query).all()
        newest = max(((row.attempt, row.step) for row in rows), default=None)
        # While a batch is written in two parts, some rows are of the step before.
        self._pairs = [LivePair.model_validate(row.document) for row in rows if (row.attempt, row.step) == newest]
        self.index = PairsIndex(
            method=str(run.config["method"]),
            compared_with=self._pairs[0].compared_with if self._pairs else None,
            pairs=[live.pair for live in self._pairs],
            steps=[] if newest is None else [newest[1]],
        )

    def step(self, step: int) -> StepPairs:
        return StepPairs(
            step=step,
            chosen_rewards=[live.chosen_reward for live in self._pairs],
            rejected_rewards=[live.rejected_reward for live in self._pairs],
            chosen_log_ratios=[live.chosen_log_ratios for live in self._pairs],
            rejected_log_ratios=[live.rejected_log_ratios for live in self._pairs],
        )


def _tokens(texts: Sequence[str] | None, ratios: Sequence[float]) -> list[TokenRatio]:
    """Empty where the method gives rewards only, and of the side that a single answer is not."""
    return [TokenRatio(text=text, log_ratio=ratio) for text, ratio in zip(texts or (), ratios, strict=False)]
