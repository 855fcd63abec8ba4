from command_line import steerboard

__all__ = ["steerboard"]
