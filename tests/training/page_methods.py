"""The methods of docs/methods.md as an installed package: a folder for PYTHONPATH."""

from __future__ import annotations

import re
from pathlib import Path

# Methods of the tests on top of it. One trains twice on each batch of answers, a half at a time; the answers for the
# second step are kept in its state. The other gives each process another batch.
VARIANTS = """
from dataclasses import replace
from typing import Literal
from steerboard_best_of_two import method

class TwoStepsConfig(method.BestOfTwoConfig):
    method: Literal["two_steps"]

class RankedConfig(method.BestOfTwoConfig):
    method: Literal["ranked"]

TWO_STEPS = replace(method.SPEC, name="two_steps", config=TwoStepsConfig, training=f"{__name__}_training:TwoSteps")
RANKED = replace(method.SPEC, name="ranked", config=RankedConfig, training=f"{__name__}_training:Ranked")
"""
VARIANTS_TRAINING = """
import os
from dataclasses import replace
from steerboard_best_of_two import training
from steerboard_workers.alignment.batches.batch_source import Batch, pack_examples, unpack_examples

class TwoStepsSource(training.BestOfTwoSource):
    kept = ()

    def batch(self, step):
        if step % 2:
            return Batch(self.kept)
        whole = super().batch(step // 2)
        half = len(whole.examples) // 2
        self.kept = whole.examples[half:]
        return Batch(whole.examples[:half], whole.metrics)

    def state(self):
        return super().state() | {"kept": pack_examples(self.kept)}

    def restore(self, state):
        super().restore(state)
        self.kept = unpack_examples(state["kept"])

class RankedSource(training.BestOfTwoSource):
    def batch(self, step):
        examples = super().batch(step).examples
        return Batch([replace(one, weight=1.0 + int(os.environ["RANK"])) for one in examples])

class TwoSteps(training.BestOfTwo):
    def source(self, context):
        return TwoStepsSource(context, self.config)

class Ranked(training.BestOfTwo):
    def source(self, context):
        return RankedSource(context, self.config)
"""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "methods.md"


def install_best_of_two(folder: Path) -> Path:
    """The page's last method, as pip would install it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    package = folder / "steerboard_best_of_two"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, block in zip(("method.py", "training.py"), blocks[4:], strict=True):
        (package / name).write_text(block)
    (package / "variants.py").write_text(VARIANTS)
    (package / "variants_training.py").write_text(VARIANTS_TRAINING)
    about = folder / "steerboard_best_of_two-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: steerboard-best-of-two\nVersion: 0.1.0\n")
    specs = {"best_of_two": "method:SPEC", "two_steps": "variants:TWO_STEPS", "ranked": "variants:RANKED"}
    lines = [f"{name} = steerboard_best_of_two.{place}" for name, place in specs.items()]
    (about / "entry_points.txt").write_text("\n".join(["[steerboard.methods]", *lines, ""]))
    return folder
