"""Findings of a lint: each has a place, a severity, its effect on decoding, and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal

from maskwright.analysis.arguments import as_strings
from maskwright.analysis.errors import UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion

Severity = Literal["error", "warning", "info"]

Place = tuple[int, int]
"""Line and column, counted from 1; (0, 0) where the text does not hold it."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""The severities, the worst first."""

NO_STORE = "no store can be built, so no mask can be made"
"""What a finding means for masks if there are none."""

CODES: Mapping[str, str] = MappingProxyType(
    {
        "ambiguity": "a text has two readings",
        "conflict": "an LALR(1) parser may do several things before the same terminal",
        "empty-schema": "no value satisfies a part of a schema",
        "endless-backup": "the lexer may have to back up over more lexemes or bytes than it can",
        "endless-derivation": "a rule derives itself, so that a text has readings without end",
        "endless-whitespace": "blanks may be emitted without end",
        "equal-terminals": "two terminals match the same texts",
        "idle-keyword": "a keyword of a schema does nothing where it stands",
        "idle-priority": "a priority changes nothing",
        "ignored-in-rule": "a rule waits for a terminal that is ignored",
        "inexact-schema": "masks cannot say a part of a schema exactly",
        "lark-differs": "Lark's own lexers read a text differently",
        "layout-newline": "the layout's newline cannot be used as it is",
        "layout-unbalanced": "the rules use the layout's terminals in an impossible way",
        "lexing-differs": "longest and contextual lexing read a text differently",
        "long-backup": "the lexer may have to back up over several lexemes or many bytes",
        "matches-empty": "a terminal matches the empty string",
        "matches-nothing": "a terminal matches no text",
        "missing-bytes": "the grammar has bytes that no token of the vocabulary holds",
        "mode-conflict": "readings of one text go on with lexemes that are read differently",
        "needless-escapes": "characters that need no escape may be written with one",
        "never-adjacent": "two terminals follow one another, but no text can have both side by side",
        "never-lexed": "a terminal always loses to others",
        "newline-without-line-feed": "the layout's newline matches texts without a line feed",
        "no-eos": "the vocabulary has no token that ends a text",
        "no-text": "no text of the grammar can be finished",
        "open-lookahead": "a look-ahead that the next byte does not decide is not enforced",
        "open-lookbehind": "a look-behind before the terminal's beginning is not enforced",
        "refused-dead-end": "masks lead to a text that can only become a terminal that no rule takes",
        "reserved-words": "string literals are taken from a pattern that matches them too",
        "special-token-text": "a literal of the grammar spells a special token",
        "stuck-after-ignored": "an ignored terminal can begin where nothing can come after it",
        "stuck-after-terminal": "nothing that the rules allow can come after a terminal",
        "too-large": "a construction grows past its limit",
        "unknown-keyword": "JSON Schema has no such keyword",
        "unproductive-rule": "no finite text can be derived from a rule",
        "unread-option": "a comment states an option, and is not read as an option line",
        "unreachable-rule": "the start symbol does not lead to a rule",
        "unsupported-pattern": "a terminal's pattern cannot be compiled to an automaton",
        "unused-part": "no rule of a composition uses a part",
        "unused-terminal": "nothing needs a terminal",
        "verbatim-bracket": "a verbatim terminal looks like a bracket of the layout",
        "vocabulary-dead-end": "masks allow a text that no token sequence completes",
    }
)
"""Code -> its meaning in a few words. docs/linting.md has a section on each."""


_ALLOW = re.compile(
    r"(?://|\#)[ \t]*lint:[ \t]*(?P<what>allow|allow-file)[ \t]+(?P<codes>[a-z-]+(?:[ \t]*,[ \t]*[a-z-]+)*)"
)


def codes_of(allow: Iterable[str]) -> frozenset[str]:
    """The codes of findings that a caller allows.

    Raises: UnknownNameError if there is no such code; MaskwrightError if `allow` is no list.
    """
    codes = frozenset(as_strings("allow", allow, "a list of codes of findings"))
    for code in sorted(codes - set(CODES)):
        raise UnknownNameError(f"no finding has the code {code!r}" + suggestion(code, sorted(CODES)))
    return codes


def allowed_by_comments(text: str) -> tuple[frozenset[str], frozenset[tuple[int, str]]]:
    """The codes of findings that a grammar's comments allow.

    Returns the codes allowed in the whole file, and (line, code) pairs: a comment allows its codes
        on its own line and the next.

    >>> allowed_by_comments("// lint: allow ambiguity, conflict\\nstart: x")[1] == {
    ...     (line, code) for line in (1, 2) for code in ("ambiguity", "conflict")}
    True
    """
    everywhere: set[str] = set()
    at_line: set[tuple[int, str]] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        for match in _ALLOW.finditer(line):
            codes = re.split(r"[ \t]*,[ \t]*", match["codes"])
            if match["what"] == "allow-file":
                everywhere.update(codes)
            else:
                at_line.update((at, code) for code in codes for at in (number, number + 1))
    return frozenset(everywhere), frozenset(at_line)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a grammar that its author should know.

    code : a key of `CODES`.
    severity : "error", "warning" or "info".
    file : what the report calls the grammar's file.
    line, column : counted from 1; 0 if the place is not in the grammar's text.
    message : what was found.
    decoding : what it means for masks.
    remedy : what to do.
    example : a text that shows the finding, or "".
    pointer : of a schema, the JSON pointer of the place; "" for the whole, and for grammars.
    part : of a composition, the part that the finding is about; "" for the host, and for others.
    """

    code: str
    severity: Severity
    file: str
    line: int
    column: int
    message: str
    decoding: str
    remedy: str
    example: str = ""
    pointer: str = ""
    part: str = ""

    @property
    def place(self) -> str:
        """``file:line:column``, without what is not known; ``file#pointer``; the part."""
        of_part = f" (part {self.part})" if self.part else ""
        if self.pointer:
            return f"{self.file}#{self.pointer}{of_part}"
        return ":".join([self.file, *(str(each) for each in (self.line, self.column) if each)]) + of_part

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.severity} {self.code}: {self.message}"]
        lines += [f"text: {self.example}"] if self.example else []
        lines += [f"when decoding: {self.decoding}", f"remedy: {self.remedy}"]
        return "\n    ".join(line.replace("\n", "\n        ") for line in lines)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a lint.

    grammar : its name, or the schema's.
    lexing, conflicts : the grammar's options; "" for a schema.
    tokenizer : the vocabulary's name; None without a vocabulary.
    findings : in the order of their places; those without a place come last.
    skipped : checks that were not run, and why.
    n_allowed : findings, not in `findings`, that comments in the grammar or the caller allow.
    """

    grammar: str
    lexing: str
    conflicts: str
    tokenizer: str | None
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...] = ()
    n_allowed: int = 0

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def passed(self) -> bool:
        """Whether there is no error and no warning."""
        return all(finding.severity == "info" for finding in self.findings)

    @property
    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity."""
        return {severity: sum(f.severity == severity for f in self.findings) for severity in SEVERITIES}

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON.

        `version` changes when a member is renamed or dropped, not when one is added.
        """
        said = {
            name: getattr(self, name) for name in ("grammar", "lexing", "conflicts", "tokenizer", "passed", "counts")
        }
        findings = [asdict(finding) for finding in self.findings]
        return {"version": 1, **said, "allowed": self.n_allowed, "skipped": list(self.skipped), "findings": findings}

    def __str__(self) -> str:
        parts = [str(finding) for finding in self.findings]
        parts += [f"{self.grammar}: not checked: {reason}" for reason in self.skipped]
        counts = ", ".join(plural(n, severity) for severity, n in self.counts.items())
        allowed = f" ({plural(self.n_allowed, 'finding')} allowed)" if self.n_allowed else ""
        return "\n".join([*parts, f"{self.grammar}: {counts}{allowed}"])


def plural(n: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "error"), plural(2, "error"), plural(2, "info")
    ('1 error', '2 errors', '2 info')
    """
    return f"{n} {noun}" if n == 1 or noun == "info" else f"{n} {noun}s"


def listed(names: list[str], most: int = 8) -> str:
    """Names with commas; at most `most` of them, then how many were left out.

    >>> listed(list("abc"), 2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def shown(data: bytes | str, most: int = 120) -> str:
    """A text as a Python literal. A text of more than `most` characters is cut in the middle."""
    text = data if isinstance(data, str) else data.decode("utf-8", "backslashreplace")
    if len(text) > most:
        text = f"{text[: most // 2]}...{text[-most // 2 :]}"
    return repr(text)
