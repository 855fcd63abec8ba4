"""Conditions by ids of another table, which the planner guesses badly."""

from __future__ import annotations

import uuid

from sqlalchemy import ARRAY, ColumnElement, Select, Uuid, any_, literal
from sqlalchemy.orm import InstrumentedAttribute, Session

FEW = 1_000


def among(session: Session, column: InstrumentedAttribute[uuid.UUID], ids: Select[uuid.UUID]) -> ColumnElement[bool]:
    """Whether the column is one of `ids`. A few are fetched first and looked up by their index; a list that is read
    from its newest end would otherwise be read to the other end for a single match, or for none."""
    few = session.scalars(ids.limit(FEW + 1)).all()
    if len(few) > FEW:
        return column.in_(ids)
    return column == any_(literal(list(few), ARRAY(Uuid)))
