"""What the judges that reward a run's answers have cost."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey, text
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, Json


class RewardJudge(Base):
    """The judge at `place` among the rules of a run, over all of its attempts.

    `requests`: answers paid for; `cached`: those that the project had. `cost`: by the judge's prices and the tokens
    that were counted; `uncertain_cost`: an upper bound for requests under way, or whose tokens were never counted.
    `failures`: requests that failed, by code.
    """

    __tablename__ = "reward_judges"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    requests: Mapped[int] = mapped_column(server_default="0", default=0)
    cached: Mapped[int] = mapped_column(server_default="0", default=0)
    prompt_tokens: Mapped[BigInt] = mapped_column(server_default="0", default=0)
    completion_tokens: Mapped[BigInt] = mapped_column(server_default="0", default=0)
    cost: Mapped[float] = mapped_column(server_default="0", default=0.0)
    uncertain_cost: Mapped[float] = mapped_column(server_default="0", default=0.0)
    failures: Mapped[Json] = mapped_column(server_default=text("'{}'::jsonb"), default=dict)
