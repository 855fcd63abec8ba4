"""The stages of a sweep's variants, written out: only what differs from one variant to another is there several times.

A stage differs where a swept field is its own, or is one of a stage that it reads. `tuned` becomes `tuned-1`, ..., by
the number of the variant; a stage that several variants share has the number of the first of them, and one that is
the same in all of them keeps its name. An evaluation is one for all: among its entrants, `tuned` means that of every
variant.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace

from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_STAGES, Size, refuse_large, refuse_many, size_of
from steerboard.recipes.overrides import Override
from steerboard.recipes.places import Node, Path
from steerboard.recipes.planning.sweep.block import SWEEP, Sweep, read_sweep
from steerboard.recipes.planning.sweep.halving import check_rungs, plan_halving, with_rungs
from steerboard.recipes.planning.sweep.metric import Decision, Metric
from steerboard.recipes.recipe import Recipe, Stage, renamed, stage_of, upstream_of
from steerboard_contracts.recipes.sweep import PlannedHalving, PlannedSweep, PlannedVariant
from steerboard_contracts.wording import listed

Stages = Mapping[str, Stage]


class Variants:
    """`names[variant][stage]`: how the stage of that variant is called."""

    def __init__(self, recipe: Recipe, sweep: Sweep, faults: Faults) -> None:
        self._recipe = recipe
        self._sweep = sweep
        self._faults = faults
        self._templates = recipe.stages
        self._evaluations = [name for name, stage in self._templates.items() if stage.evaluates]
        self._written = [self._of_variant(choices) for choices in sweep.choices]
        self.names = self._named()

    def stages(self, halving: PlannedHalving | None) -> list[Stage]:
        """The stages of all variants, each where its template was."""
        stages: dict[str, Stage] = {}
        for template in self._templates:
            for names, written in zip(self.names, self._written, strict=True):
                stage, name = written[template], names[template]
                if name not in stages:
                    stages[name] = self._widened(stage) if stage.evaluates else replace(stage.rewired(names), name=name)
        return list(with_rungs(stages.values(), halving) if halving is not None else stages.values())

    def _of_variant(self, choices: Mapping[str, Node]) -> Stages:
        """The recipe's stages with the values of one variant."""
        self._recipe.budget.check()
        stages = {**self._templates}
        for field, choice in choices.items():
            name, *parts = field.split(".")
            stages[name] = replace(stages[name], node=_set(stages[name].node, parts, choice))
        return stages

    # -- names ------------------------------------------------------------------------------------------------------

    def _named(self) -> list[dict[str, str]]:
        identities = [self._identities(stages) for stages in self._written]
        names: list[dict[str, str]] = [{} for _ in identities]
        for template in self._templates:
            own = [identity[template] for identity in identities]
            common = template in self._evaluations or len(set(own)) == 1
            for variant, identity in enumerate(own):
                names[variant][template] = template if common else f"{template}-{own.index(identity) + 1}"
        return names

    def _identities(self, stages: Stages) -> dict[str, str]:
        """What each stage is made of, its upstream stages included, as one hash."""
        hashes: dict[str, str] = {}

        def identity(name: str, above: tuple[str, ...]) -> str:
            if name in hashes or name in above or name not in stages:
                return hashes.get(name, name)  # those above wait for each other, which is reported later
            self._recipe.budget.check()
            stage = stages[name]
            read = [identity(stage_of(reference), (*above, name)) for reference in stage.references.values()]
            text = json.dumps([name, stage.node.value, read], sort_keys=True, default=str)
            hashes[name] = hashlib.sha256(text.encode()).hexdigest()
            return hashes[name]

        return {name: identity(name, ()) for name in stages}

    def _names_are_free(self) -> bool:
        for names in self.names:
            for template, name in names.items():
                if name != template and name in self._templates:
                    message = f"there is also a stage `{name}`, which is how a variant of `{template}` would be called"
                    self._recipe.fault(self._faults, ("stages", name), message)
                    return False
        return True

    def _widened(self, stage: Stage) -> Stage:
        """A stage that varies means that of every variant among the entrants of an evaluation."""
        meant: dict[Path, list[str]] = {}
        for at, entrant in stage.references.items():
            if at[0] == "entrants" and len(at) > 1 and self._varies(entrant):
                meant[at] = list(dict.fromkeys(renamed(entrant, names) for names in self.names))
        return stage.widened(meant)

    def _varies(self, reference: str) -> bool:
        stage = stage_of(reference)
        return stage in self._templates and len({names[stage] for names in self.names}) > 1

    def _one_judge(self) -> bool:
        """An evaluation's answers are judged alike: nothing but its entrants varies."""
        sound = True
        for name in self._evaluations:
            for at, reference in self._templates[name].references.items():
                if at[0] != "entrants" and self._varies(reference):
                    message = (
                        f"`{reference}` varies in this sweep, and what judges the variants must be the same for all"
                    )
                    self._recipe.fault(self._faults, ("stages", name, *at), message)
                    sound = False
        return sound

    def planned(self) -> PlannedSweep | None:
        """Returns None where the sweep cannot decide between its variants, which is a fault."""
        block = self._sweep.block
        reader = Metric(self._recipe, block, self._written, self.names, self._faults)
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
        if not self._names_are_free() or not self._one_judge():
            return None
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
        """Returns None, with faults, where rungs cannot be written. `upstream` of what the sweep's own figure is of."""
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
        stage = stage_of(named)
        if stage in self._evaluations:
            message = f"`{stage}` is an evaluation, which is there after the last rung: name a training stage's figure"
            return self._refuse(("halving", "figure"), message)
        own = given.figure is not None
        update = {"metric": named, "goal": given.goal if own else block.goal, "entrant": None, "score": None}
        as_metric = block.model_copy(update=update)
        decision = Metric(self._recipe, as_metric, self._written, self.names, self._faults, ("halving",)).read()
        if decision is None or decision.figure is None:
            return None
        if stage not in upstream:
            message = f"`{metric.judged}`, whose figure decides in the end, does not need `{stage}`"
            return self._refuse(("halving", "figure"), message)
        stages = [names[stage] for names in self.names]
        wrong = check_rungs(given, block, stage, self._templates[stage].fields, stages)
        for key, message in wrong:
            self._refuse(key, message)
        planned = plan_halving(given, stages, decision.figure, decision.goal)
        for rung in planned.rungs[:-1]:
            taken = next((name for name in rung.stages if name in self._templates), None)
            if taken is not None:
                self._recipe.fault(self._faults, ("stages", taken), f"`{taken}` is how a stage of a rung is called")
                return None
        return None if wrong else planned

    def _refuse(self, key: tuple[str, ...], message: str) -> PlannedHalving | None:
        """A fault at a key of the sweep, in place of what was to be planned."""
        self._recipe.fault(self._faults, (SWEEP, *key), message)
        return None


def expand_sweep(recipe: Recipe, faults: Faults) -> tuple[Recipe, PlannedSweep | None]:
    """The recipe with the stages of the sweep's variants. It stays as it is, and the sweep is None, where there is no
    sweep, or none that can be written out. Raises `InvalidRecipe` for too many of them."""
    sweep = read_sweep(recipe, faults)
    if sweep is None:
        return recipe, None
    _refuse_many(recipe, sweep)
    variants = Variants(recipe, sweep, faults)
    planned = variants.planned()
    return (recipe, None) if planned is None else (recipe.with_stages(variants.stages(planned.halving)), planned)


def _set(node: Node, parts: list[str], choice: Node) -> Node:
    """The node with a value at `parts`; mappings on the way are made where the file has none, or the word `greedy`."""
    if not parts:
        return choice
    if not isinstance(node.value, dict | list):
        node = Node({}, node.place)
    part = int(parts[0]) if isinstance(node.value, list) else parts[0]
    absent = isinstance(part, str) and part not in node.value
    return node.put((part,), _set(Node({}, node.place) if absent else node.at(part), parts[1:], choice))


def _refuse_many(recipe: Recipe, sweep: Sweep) -> None:
    """Counts the stages of all variants and their rungs before they are written out. Raises `InvalidRecipe`.

    A reference that varies counts as one to each of its values, so that a stage is never counted too low.
    """
    reads = {name: stage.reads for name, stage in recipe.stages.items()}
    for choices in sweep.choices:
        for field, choice in choices.items():
            if isinstance(choice.value, str):
                reads[stage_of(field)] |= {stage_of(choice.value)}
    halving = sweep.block.halving
    halved = stage_of(halving.figure or sweep.block.metric) if halving is not None else None
    number, size = 0, Size()
    for name, stage in recipe.stages.items():
        recipe.budget.check()
        upstream = upstream_of(reads, name)
        fields = [field for field in sweep.block.vary if stage_of(field) in upstream]
        # One for each different combination of the swept values that reach it.
        combinations = {tuple(repr(choices[field].value) for field in fields) for choices in sweep.choices}
        copies = 1 if stage.evaluates else len(combinations)
        if halving is not None and name == halved:
            copies *= len(halving.rungs)
        number += copies
        size += size_of(stage.node.value) * copies
    where = recipe.location((SWEEP,))
    refuse_many(where, "stages in all its variants", number, MAX_STAGES)
    refuse_large(where, size, " in all its variants")


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
    """A summary for people: how many variants, of what, and what decides."""
    how = "every combination" if planned.search == "grid" else f"drawn with seed {planned.seed}"
    text = (
        f"the sweep has {len(planned.variants)} variants of {listed(planned.fields)} ({how}); "
        f"the figure of {planned.metric} decides"
    )
    if planned.halving is None:
        return text
    halving = planned.halving
    steps = ", ".join(f"{halving.kept(rung.number - 1)} for {rung.steps:,}" for rung in halving.rungs)
    shared = "; variants that share the training count once" if halving.shared else ""
    return f"{text}; variants by steps of training: {steps}, the best by {halving.figure} continuing{shared}"
