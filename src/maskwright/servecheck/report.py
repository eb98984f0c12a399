"""What a check of a model's folder has found, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "note"]


class Problem(NamedTuple):
    """Something that is wrong, or that one should know.

    severity : "error" for what makes masks wrong or impossible, "note" for the rest.
    code : a name for programs.
    message : what was found.
    remedy : what to do.
    """

    severity: Severity
    code: str
    message: str
    remedy: str


class Runtime(NamedTuple):
    """What would happen in a runtime.

    name : the runtime's.
    version : that is installed; None if it is not.
    state : "supported", "untested", "too old", "not for this model", "does not find maskwright" or
        "not installed".
    why : more on the state; "" for nothing.
    line : what to run or to write.
    request : how a request brings the constraint; "" where there are no requests.
    """

    name: str
    version: str | None
    state: str
    why: str = ""
    line: str = ""
    request: str = ""


@dataclass(frozen=True)
class ServeReport:
    """The result of `check_serving`.

    model, constraint : their names.
    facts : numbers and names that were found, for people and programs.
    problems : errors first.
    checked : what was checked, in words.
    skipped : what was not, and why.
    runtimes : installed ones first.
    """

    model: str
    constraint: str
    facts: Mapping[str, Any]
    problems: tuple[Problem, ...]
    checked: tuple[str, ...]
    skipped: tuple[str, ...]
    runtimes: tuple[Runtime, ...]

    @property
    def passed(self) -> bool:
        """Whether there is no error."""
        return all(problem.severity != "error" for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return {
            "version": 1,
            "model": self.model,
            "constraint": self.constraint,
            "passed": self.passed,
            "facts": dict(self.facts),
            "problems": [problem._asdict() for problem in self.problems],
            "checked": list(self.checked),
            "skipped": list(self.skipped),
            "runtimes": [runtime._asdict() for runtime in self.runtimes],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.model} under {self.constraint}"
        for what in self.checked:
            yield f"  checked: {what}"
        for what in self.skipped:
            yield f"  not checked: {what}"
        for problem in self.problems:
            yield f"{problem.severity} {problem.code}: {problem.message}"
            yield f"    {problem.remedy}"
        there = [runtime for runtime in self.runtimes if runtime.version is not None]
        for runtime in there:
            yield f"{runtime.name} {runtime.version}: {runtime.state}{f' ({runtime.why})' if runtime.why else ''}"
            if runtime.line:
                yield f"    {runtime.line}"
            if runtime.request:
                yield f"    {runtime.request}"
        if absent := [runtime.name for runtime in self.runtimes if runtime.version is None]:
            yield f"not installed: {', '.join(absent)}"
        errors = sum(problem.severity == "error" for problem in self.problems)
        verdict = "fit to serve" if self.passed else "not fit to serve"
        if self.passed and any(problem.code == "no-weights" for problem in self.problems):
            verdict = "tokens and constraint fit; no weights to serve"
        yield f"{errors} error{'' if errors == 1 else 's'}: {verdict}"
