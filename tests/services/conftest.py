from support.processes.command_line import steerboard

__all__ = ["steerboard"]
