"""accounts: tokens of people who were removed or demoted before tokens ended with that

Since 0013 a token ends when its maker is removed from its project, or gets a lesser role. Here those
end that would have ended had it always been so. The audit log knows who made a token, and who was removed and demoted.

Revision: 0014, after 0013.
"""

from __future__ import annotations

import sqlalchemy as sa
import uuid_utils
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Whose a token is that was made with another token, which the log gives by its name. At any time a name belongs to one
# token of a project. A token of the whole server may have it too; then this one counts as the person's, since it is
# easier to make a token again than to find out about one that should have ended.
_MADE_BY_TOKENS = """
    WITH RECURSIVE owned AS (
        SELECT id, user_id FROM api_tokens WHERE project_id IS NOT NULL AND user_id IS NOT NULL
        UNION
        SELECT made.id, owned.user_id
        FROM owned JOIN api_tokens maker ON maker.id = owned.id
        JOIN audit_log a ON a.action = 'token.create' AND a.project_id = maker.project_id
            AND a.actor = 'token:' || maker.name AND a.created_at >= maker.created_at
            AND (maker.revoked_at IS NULL OR a.created_at <= maker.revoked_at)
        JOIN api_tokens made ON made.project_id = maker.project_id AND made.user_id IS NULL
            AND a.target = 'token ' || made.name || ' ' || made.id::text
    )
    UPDATE api_tokens t SET user_id = owned.user_id FROM owned WHERE owned.id = t.id AND t.user_id IS NULL"""


def _may(role: str) -> str:
    return f"""
        CASE {role} WHEN 'owner' THEN ARRAY['read', 'write', 'run', 'admin']
            WHEN 'engineer' THEN ARRAY['read', 'write', 'run'] WHEN 'viewer' THEN ARRAY['read']
            ELSE ARRAY[]::text[] END"""


# By the role that the person has now, and by each since the token was made: coming back brings no token back.
_END = f"""
    UPDATE api_tokens t SET revoked_at = clock_timestamp()
    FROM users u
    WHERE u.id = t.user_id AND t.project_id IS NOT NULL AND t.revoked_at IS NULL
        AND NOT (t.scopes <@ {_may("(SELECT role FROM memberships WHERE user_id = u.id AND project_id = t.project_id)")}
            AND NOT EXISTS (
                SELECT FROM audit_log a
                WHERE a.project_id = t.project_id AND a.target = 'user ' || u.name AND a.created_at >= t.created_at
                    AND (a.action = 'member.remove'
                        OR a.action = 'member.change' AND NOT t.scopes <@ {_may("a.detail ->> 'to'")})))
    RETURNING t.id, t.name, t.project_id, u.name AS person"""

_NOTE = """
    INSERT INTO audit_log (id, project_id, actor, action, target, detail)
    VALUES (:id, :project_id, 'upgrade', 'token.revoke', :target, jsonb_build_object('of', CAST(:person AS text)))"""


def upgrade() -> None:
    connection = op.get_bind()
    connection.execute(sa.text(_MADE_BY_TOKENS))
    for token in connection.execute(sa.text(_END)).all():
        noted = {"project_id": token.project_id, "target": f"token {token.name} {token.id}", "person": token.person}
        connection.execute(sa.text(_NOTE), noted | {"id": str(uuid_utils.uuid7())})


def downgrade() -> None:
    """What has ended stays ended."""
