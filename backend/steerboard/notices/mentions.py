"""The notice of a comment that names people."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.marks.hooks import Mention
from steerboard.notices.outbox import write_news
from steerboard.runs.hooks import News


def write_mention(session: Session, mention: Mention) -> None:
    """Add the deliveries to the rules that want it."""
    about = {
        "id": str(mention.comment_id),
        "name": mention.about,
        "state": None,
        "reason": mention.text,
        "author": mention.author,
        "mentioned": list(mention.names),
    }
    write_news(session, [News(mention.project_id, "comment.mention", about, path=mention.path)])
