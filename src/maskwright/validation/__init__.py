"""Is a store right? In: a store and a user's texts. Out: a report of every doubt.

The answers of the store are compared with those of independent parsers.
"""

from maskwright.validation.report import Finding, ValidationReport
from maskwright.validation.run import validate

__all__ = ["Finding", "ValidationReport", "validate"]
