from command_line import steerboard, url
from evaluation_databases import evaluated, shared

__all__ = ["evaluated", "shared", "steerboard", "url"]
