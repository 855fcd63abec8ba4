from support.processes.command_line import steerboard, url
from support.rows.evaluation_databases import evaluated, shared

__all__ = ["evaluated", "shared", "steerboard", "url"]
