"""What is wrong with a grammar, before anything is decoded with it?

In: a grammar, perhaps a vocabulary. Out: a report of findings.
"""

from maskwright.lint.finding import CODES, Finding, Report, Severity
from maskwright.lint.run import lint_grammar

__all__ = ["CODES", "Finding", "Report", "Severity", "lint_grammar"]
