from support.rows.evaluation_databases import evaluated, shared

__all__ = ["evaluated", "shared"]
