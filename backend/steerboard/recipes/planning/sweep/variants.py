"""The stages of a sweep's variants, written out: only what differs from one variant to another is there several times.

A stage differs where a swept field is its own, or is one of a stage that it reads. `tuned` becomes `tuned-1`, ..., by
the number of the variant; a stage that several variants share has the number of the first of them, and one that is
the same in all of them keeps its name. An evaluation is one for all: among its entrants, `tuned` means that of every
variant.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from steerboard.recipes.document import Document
from steerboard.recipes.errors import Faults
from steerboard.recipes.overrides import Override
from steerboard.recipes.places import Path
from steerboard.recipes.planning.references import references, rewired, value_at, widen_list, write_copy
from steerboard.recipes.planning.sweep.block import SWEEP, Sweep, read_sweep
from steerboard.recipes.planning.sweep.copies import refuse_many_copies
from steerboard.recipes.planning.sweep.halving import check_rungs, plan_halving, write_rungs
from steerboard.recipes.planning.sweep.metric import Decision, Metric, run_of
from steerboard_contracts.recipes.sweep import PlannedHalving, PlannedSweep, PlannedVariant
from steerboard_contracts.run_kinds import evaluates
from steerboard_contracts.wording import listed

Stages = dict[str, Any]


class Variants:
    """`names[variant][stage]`: how the stage of that variant is called."""

    def __init__(self, document: Document, sweep: Sweep, faults: Faults) -> None:
        self._document = document
        self._sweep = sweep
        self._faults = faults
        self._templates: Stages = copy.deepcopy(document.data["stages"])
        self._evaluations = [name for name, fields in self._templates.items() if evaluates(run_of(fields))]
        self._written = [self._set(choices) for choices in sweep.choices]
        self.names = self._named()

    def write(self) -> PlannedSweep | None:
        """Writes the copies. None where the sweep cannot decide between them, which is a fault."""
        planned = self._planned()
        if planned is None or not self._names_are_free() or not self._one_judge():
            return None
        stages: Stages = self._document.data["stages"]
        for name in self._evaluations:
            self._widen(name)
        for template in self._templates:
            written = list(dict.fromkeys(names[template] for names in self.names))
            if written == [template]:
                continue
            for variant, names in enumerate(self.names):
                if names[template] not in stages:
                    self._copy(variant, template)
            del stages[template]
        self._in_order(stages)
        if planned.halving is not None:
            write_rungs(self._document, planned.halving)
        return planned

    def _set(self, choices: Mapping[str, Any]) -> Stages:
        """The recipe's stages with the values of one variant."""
        self._document.budget.check()
        stages = copy.deepcopy(self._templates)
        for field, choice in choices.items():
            self._set_field(stages, field, choice.value)
        return stages

    def _set_field(self, stages: Stages, field: str, value: Any) -> None:
        target: Any = stages
        *parts, last = field.split(".")
        for part in parts:
            inner = target[int(part)] if isinstance(target, list) else target.get(part)
            if not isinstance(inner, dict | list):
                # The file has none, or the word `greedy` where a mapping is due.
                inner = target[part] = {}
            target = inner
        if isinstance(target, list):
            target[int(last)] = value
        else:
            target[last] = value

    # -- names ------------------------------------------------------------------------------------------------------

    def _named(self) -> list[dict[str, str]]:
        identities = [self._identities(stages) for stages in self._written]
        found: list[dict[str, str]] = [{} for _ in identities]
        for template in self._templates:
            mine = [identity[template] for identity in identities]
            common = template in self._evaluations or len(set(mine)) == 1
            for variant, identity in enumerate(mine):
                found[variant][template] = template if common else f"{template}-{mine.index(identity) + 1}"
        return found

    def _identities(self, stages: Stages) -> dict[str, str]:
        """What each stage is made of, its upstream stages included, as one hash."""
        found: dict[str, str] = {}

        def identity(name: str, above: tuple[str, ...]) -> str:
            if name in found:
                return found[name]
            if name in above:
                return name  # they wait for each other, which is reported later

            def wired(reference: str) -> str:
                stage, dot, output = reference.partition(".")
                return identity(stage, (*above, name)) + dot + output if stage in stages else reference

            self._document.budget.check()
            text = json.dumps([name, rewired(stages[name], wired)], sort_keys=True, default=str)
            found[name] = hashlib.sha256(text.encode()).hexdigest()
            return found[name]

        return {name: identity(name, ()) for name in stages}

    def _names_are_free(self) -> bool:
        for names in self.names:
            for template, name in names.items():
                if name != template and name in self._templates:
                    message = f"there is also a stage `{name}`, which is how a variant of `{template}` would be called"
                    self._document.fault(self._faults, ("stages", name), message)
                    return False
        return True

    # -- writing ----------------------------------------------------------------------------------------------------

    def _copy(self, variant: int, template: str) -> None:
        names = self.names[variant]

        def wired(reference: str) -> str:
            stage, dot, output = reference.partition(".")
            return names.get(stage, stage) + dot + output

        path: Path = ("stages", names[template])
        write_copy(self._document, ("stages", template), path, rewired(self._written[variant][template], wired))
        for field, choice in self._sweep.choices[variant].items():
            stage, *parts = field.split(".")
            if stage == template and choice.place is not None:
                at = (*path, *(int(part) if part.isdigit() else part for part in parts))
                self._document.places.replace(at, choice.place)

    def _widen(self, name: str) -> None:
        """The entrants of an evaluation: a stage that varies means that of every variant."""

        def each(reference: str) -> list[str]:
            stage, dot, output = reference.partition(".")
            return list(dict.fromkeys(names[stage] + dot + output for names in self.names))

        found = [at for at in references(self._templates[name]) if self._varies(self._templates[name], at)]
        items = {int(at[1]): at[2:] for at in found if at[0] == "entrants" and len(at) > 1}
        if items:
            widen_list(self._document, ("stages", name, "entrants"), items, each)

    def _varies(self, fields: Any, at: Path) -> bool:
        stage = str(value_at(fields, at)).partition(".")[0]
        return stage in self._templates and len({names[stage] for names in self.names}) > 1

    def _in_order(self, stages: Stages) -> None:
        """Copies where their template was."""
        order = list(dict.fromkeys(names[template] for template in self._templates for names in self.names))
        self._document.data["stages"] = {name: stages[name] for name in order}

    def _one_judge(self) -> bool:
        """An evaluation's answers are judged alike: nothing but its entrants varies."""
        sound = True
        for name in self._evaluations:
            fields = self._templates[name]
            for at in references(fields):
                if at[0] != "entrants" and self._varies(fields, at):
                    stage = value_at(fields, at)
                    message = f"`{stage}` varies in this sweep, and what judges the variants must be the same for all"
                    self._document.fault(self._faults, ("stages", name, *at), message)
                    sound = False
        return sound

    def _planned(self) -> PlannedSweep | None:
        block = self._sweep.block
        reader = Metric(self._document, block, self._written, self.names, self._faults)
        metric = reader.read()
        if metric is None:
            return None
        halving = None
        if block.halving is not None:
            halving = self._halving(reader.upstream_of(metric.judged), metric)
            if halving is None:
                return None
        variants = [
            PlannedVariant(
                number=number,
                values={field: choice.value for field, choice in choices.items()},
                judged=names[metric.judged],
                stages=[
                    *(rung.stages[number - 1] for rung in (halving.rungs[:-1] if halving else ())),
                    *(name for template, name in names.items() if name != template),
                ],
            )
            for number, (choices, names) in enumerate(zip(self._sweep.choices, self.names, strict=True), start=1)
        ]
        return PlannedSweep(
            search=block.search,
            seed=block.seed if block.search == "random" else None,
            fields=list(block.vary),
            metric=block.metric,
            goal=metric.goal,
            stage=metric.stage,
            judge=metric.judge,
            score=metric.score,
            figure=metric.figure,
            halving=halving,
            variants=variants,
        )

    def _halving(self, upstream: set[str], metric: Decision) -> PlannedHalving | None:
        """None, with faults, where rungs cannot be written. `upstream` of what the sweep's own figure is of."""
        block = self._sweep.block
        given = block.halving
        assert given is not None
        if given.figure is None and metric.figure is None:
            message = (
                "needs `figure`: a held-out figure of the training stage whose rungs these are, as `tuned.eval_loss`"
            )
            return self._refuse(("halving",), message)
        if given.goal is not None and given.figure is None:
            return self._refuse(("halving", "goal"), "belongs to a `figure`; without one, the sweep's decides")
        named = given.figure or block.metric
        stage = named.partition(".")[0]
        if evaluates(run_of(self._written[0].get(stage))):
            message = f"`{stage}` is an evaluation, which is there after the last rung: name a training stage's figure"
            return self._refuse(("halving", "figure"), message)
        own = given.figure is not None
        update = {"metric": named, "goal": given.goal if own else block.goal, "entrant": None, "score": None}
        as_metric = block.model_copy(update=update)
        found = Metric(self._document, as_metric, self._written, self.names, self._faults, ("halving",)).read()
        if found is None or found.figure is None:
            return None
        if stage not in upstream:
            message = f"`{metric.judged}`, whose figure decides in the end, does not need `{stage}`"
            return self._refuse(("halving", "figure"), message)
        stages = [names[stage] for names in self.names]
        wrong = check_rungs(given, block, stage, self._templates[stage], stages)
        for key, message in wrong:
            self._refuse(key, message)
        planned = plan_halving(given, stages, found.figure, found.goal)
        for rung in planned.rungs[:-1]:
            taken = next((name for name in rung.stages if name in self._templates), None)
            if taken is not None:
                self._document.fault(self._faults, ("stages", taken), f"`{taken}` is how a stage of a rung is called")
                return None
        return None if wrong else planned

    def _refuse(self, key: tuple[str, ...], message: str) -> PlannedHalving | None:
        """A fault at a key of the sweep, in place of what was to be planned."""
        self._document.fault(self._faults, (SWEEP, *key), message)
        return None


def write_variants(document: Document, faults: Faults) -> PlannedSweep | None:
    """Writes the stages of the sweep's variants into the document. None where there is no sweep, or none that can be
    written out; the stages are as they were then. Raises `InvalidRecipe` for too many of them."""
    sweep = read_sweep(document, faults)
    if sweep is None:
        return None
    refuse_many_copies(document, sweep)
    return Variants(document, sweep, faults).write()


def variant_of(planned: PlannedSweep | None, change: Override) -> str | None:
    """Why an override of one variant's stage is refused; None for any other."""
    for variant in planned.variants if planned else ():
        if change.head in variant.stages:
            template = re.sub(r"-\d+(-rung\d+)?$", "", change.head)
            return (
                f"`{change.head}` is a stage of variant {variant.number} of the sweep: set `{template}` "
                "for all of them, or `sweep.vary.STAGE.FIELD`"
            )
    return None


def summary_of(planned: PlannedSweep) -> str:
    """For people: how many variants, of what, and what decides."""
    how = "every combination" if planned.search == "grid" else f"drawn with seed {planned.seed}"
    found = (
        f"the sweep has {len(planned.variants)} variants of {listed(planned.fields)} ({how}); "
        f"the figure of {planned.metric} decides"
    )
    if planned.halving is None:
        return found
    halving = planned.halving
    steps = ", ".join(f"{halving.kept(rung.number - 1)} for {rung.steps:,}" for rung in halving.rungs)
    shared = "; variants that share the training count once" if halving.shared else ""
    return f"{found}; variants by steps of training: {steps}, the best by {halving.figure} continuing{shared}"
