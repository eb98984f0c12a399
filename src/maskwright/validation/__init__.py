"""Is a store right, on a user's own texts and by independent parsers? In: a store and texts. Out: a report of every doubt."""

from maskwright.validation.report import Finding, ValidationReport
from maskwright.validation.run import validate

__all__ = ["Finding", "ValidationReport", "validate"]
