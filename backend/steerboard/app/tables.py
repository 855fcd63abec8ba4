"""Every table of the platform, so that Alembic and tests see one complete metadata."""

from steerboard.accounts import tables as accounts
from steerboard.arena import tables as arena
from steerboard.datasets import derived_tables as statistics
from steerboard.datasets import tables as datasets
from steerboard.datasets.collections import tables as collections
from steerboard.datasets.imports import tables as imports
from steerboard.datasets.review import tables as reviews
from steerboard.evaluation import judge_tables as judges
from steerboard.evaluation import tables as evaluation
from steerboard.evaluation.ranking import tables as rankings
from steerboard.evaluation.reward_judges import tables as reward_judges
from steerboard.marks import tables as marks
from steerboard.notices import tables as notices
from steerboard.openai_api import tables as openai_api
from steerboard.platform.database import Base
from steerboard.playground import tables as playground
from steerboard.registry import tables as registry
from steerboard.runs import tables as runs
from steerboard.runs.facts import tables as facts
from steerboard.sharing import tables as sharing
from steerboard.trackers import tables as trackers

__all__ = [
    "accounts",
    "arena",
    "collections",
    "datasets",
    "evaluation",
    "facts",
    "imports",
    "judges",
    "marks",
    "metadata",
    "notices",
    "openai_api",
    "playground",
    "rankings",
    "registry",
    "reviews",
    "reward_judges",
    "runs",
    "sharing",
    "statistics",
    "trackers",
]

metadata = Base.metadata
