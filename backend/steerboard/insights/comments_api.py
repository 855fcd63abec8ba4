"""Comments on runs, pipelines, models, datasets and the reports of evaluations over HTTP."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.insights.marked_things import marked_thing
from steerboard.marks import comments
from steerboard.marks.schemas import CommentIn, CommentOut, ItemType
from steerboard.platform.http.errors import problems

router = Router(tags=["marks"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Writer = Annotated[Access, Depends(AccessTo("write"))]


@router.get("/marks/{type}/{item}/comments", responses=problems(404))
def list_comments(type: ItemType, item: str, session: Db, access: Reader) -> list[CommentOut]:
    """The comments on a thing, the oldest first; those on an evaluation are about its report."""
    id_, _ = marked_thing(session, access.project, type, item)
    return comments.comments_of(session, access, id_)


@router.post("/marks/{type}/{item}/comments", status_code=201, responses=problems(404, 409))
def add_comment(type: ItemType, item: str, body: CommentIn, session: Db, access: Writer) -> CommentOut:
    """Comment on a thing, in Markdown. `@name` of a member sends the notice `comment.mention`."""
    id_, name = marked_thing(session, access.project, type, item)
    return comments.add(session, access, type, id_, name, body.text)


@router.patch("/comments/{item_comment}", responses=problems(403, 404))
def edit_comment(item_comment: uuid.UUID, body: CommentIn, session: Db, access: Writer) -> CommentOut:
    """Edit your own comment. Only members whom it did not name before are news."""
    comment = comments.get_comment(session, access, item_comment)
    _, name = marked_thing(session, access.project, comment.type, str(comment.item_id))
    return comments.edit(session, access, item_comment, body.text, name)


@router.delete("/comments/{item_comment}", status_code=204, responses=problems(403, 404))
def delete_item_comment(item_comment: uuid.UUID, session: Db, access: Writer) -> None:
    """Delete your own comment; owners of the project delete any."""
    gone = comments.delete(session, access, item_comment)
    audit(session, access, f"{gone.type}.delete_comment", f"{gone.type} {gone.item_id}", {"author": gone.actor})
