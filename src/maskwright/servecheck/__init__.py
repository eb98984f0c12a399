"""Will this model be served under this grammar as it should?

In: a model's folder (or GGUF file) and a constraint. Out: a `ServeReport`: problems with what to
do, and what would happen in each runtime that is installed.
"""

from maskwright.servecheck.report import Problem, ServeReport
from maskwright.servecheck.run import check_serving

__all__ = ["Problem", "ServeReport", "check_serving"]
