"""The independent oracle, for tests: `maskwright.validation.oracle`, which shares no code with the engine."""

from maskwright.validation.oracle import Oracle, State

__all__ = ["Oracle", "State"]
