"""What is wrong with a grammar or a schema, before anything is decoded with it?

In: a grammar, perhaps a vocabulary; a JSON schema; or a composition. Out: a report of findings.
"""

from maskwright.lint.compositions import lint_composition
from maskwright.lint.finding import CODES, Finding, Report, Severity
from maskwright.lint.run import lint_grammar
from maskwright.lint.schemas import lint_schema

__all__ = ["CODES", "Finding", "Report", "Severity", "lint_composition", "lint_grammar", "lint_schema"]
