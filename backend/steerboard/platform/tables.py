"""Every table of the platform, so that Alembic and tests see one complete metadata."""

from steerboard.accounts import tables as accounts
from steerboard.datasets import tables as datasets
from steerboard.platform.database import Base
from steerboard.registry import tables as registry
from steerboard.runs import tables as runs

__all__ = ["accounts", "datasets", "metadata", "registry", "runs"]

metadata = Base.metadata
