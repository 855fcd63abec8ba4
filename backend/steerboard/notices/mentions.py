"""The notice of a comment that names people."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.marks.hooks import Mention
from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import note_news


def write_mention(session: Session, mention: Mention) -> None:
    """Tell of it when the transaction commits."""
    about = {
        "id": str(mention.comment_id),
        "name": mention.about,
        "state": None,
        "reason": mention.text,
        "author": mention.author,
        "mentioned": list(mention.names),
    }
    note_news(session, News(mention.project_id, "comment.mention", about, path=mention.path))
