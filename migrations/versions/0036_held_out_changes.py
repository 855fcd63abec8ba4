"""edits made before now name the held-out rows that they changed

Revision: 0036, after 0035.
"""

from __future__ import annotations

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

# What a version has from its source, then its own. A dataset is made after its source.
_MARK = """
    DO $$
    DECLARE
        made RECORD;
        flips integer;
        drops integer;
        changes jsonb;
    BEGIN
        FOR made IN
            SELECT id, name, origin, coalesce(parent_id, base_dataset_id) AS source
            FROM datasets WHERE parent_id IS NOT NULL OR base_dataset_id IS NOT NULL
            ORDER BY created_at, id
        LOOP
            SELECT coalesce(origin -> 'held_out_changes', '[]') INTO changes FROM datasets WHERE id = made.source;
            IF made.origin ->> 'type' = 'edit' THEN
                SELECT count(*) INTO flips FROM samples
                JOIN jsonb_array_elements_text(made.origin -> 'flipped_rows') AS flipped (row)
                    ON samples.row = flipped.row::integer
                WHERE samples.dataset_id = made.source AND samples.held_out;
                SELECT count(*) INTO drops FROM samples
                JOIN dropped_rows AS dropped ON dropped.dataset_id = made.id AND dropped.row = samples.row
                WHERE samples.dataset_id = made.source AND samples.held_out;
                IF flips + drops > 0 THEN
                    changes := changes || jsonb_build_object(
                        'dataset', made.name, 'dataset_id', made.id, 'flipped', flips, 'dropped', drops
                    );
                END IF;
            END IF;
            IF changes <> '[]' THEN
                UPDATE datasets SET origin = origin || jsonb_build_object('held_out_changes', changes)
                WHERE id = made.id;
            END IF;
        END LOOP;
    END $$
"""
# Forgets the reports of projects with such a dataset. They are computed again from the same data when someone looks.
_FORGET_REPORTS = """
    DELETE FROM evaluation_reports USING evaluations, datasets
    WHERE evaluations.id = evaluation_reports.evaluation_id AND datasets.project_id = evaluations.project_id
    AND datasets.origin ? 'held_out_changes'
"""


def upgrade() -> None:
    op.execute(_MARK)
    op.execute(_FORGET_REPORTS)


def downgrade() -> None:
    op.execute(_FORGET_REPORTS)
    op.execute("UPDATE datasets SET origin = origin - 'held_out_changes' WHERE origin ? 'held_out_changes'")
