"""The independent oracle, for tests: `maskwright.validation.oracle`, which shares no code with the engine."""

from maskwright.validation.oracle import Oracle, State
from maskwright.validation.oracle_patterns import Pattern as _Pattern

__all__ = ["Oracle", "State", "_Pattern"]
