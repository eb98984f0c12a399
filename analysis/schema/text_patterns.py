"""Texts that are no JSON: those that a regular expression matches as a whole, and choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from maskwright.analysis.arguments import a_type, clip, printable
from maskwright.analysis.errors import EmptyLanguageError, GrammarError
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.strings import literals


@dataclass(frozen=True, repr=False, eq=False)
class Regex:
    """The texts of an automaton: what `load_regex` and `load_choice` return, for `build_store`.

    name : what errors call it.
    automaton : the bytes of the texts.
    """

    kind: ClassVar[Literal["pattern"]] = "pattern"
    """Which kind of constraint it is, as reports and files name it."""

    name: str
    automaton: Dfa

    def __repr__(self) -> str:
        return f"<Regex {printable(self.name)}: {self.automaton.n_states} states>"


@on_own_stack
def load_regex(pattern: str, flags: str = "", dialect: Literal["python", "ecma"] = "python") -> Regex:
    r"""A regular expression, for `build_store`: the texts that it matches as a whole.

    pattern : as `dialect` reads it: Python's `re` for texts, or ECMA 262 with the flag `u`, and
        besides what schemas have of annex B, such as ``\-`` and ``a{,2}``.
    flags : letters of ``aimsux`` for Python; "" or "u" for ECMA 262.

    Raises: GrammarError for a syntax error, and for what no automaton reads, such as a
    back-reference; EmptyLanguageError, which is one, for a pattern that no text matches; LimitError
    for an automaton of more than 60,000 states.

    Example:
        >>> load_regex(r"\d{4}-\d\d")
        <Regex '\\d{4}-\\d\\d': 8 states>
    """
    if not isinstance(pattern, str):
        raise GrammarError(f"the pattern is {a_type(pattern)}; expected a str{meant(pattern, 'load_regex')}")
    if not isinstance(flags, str) or not isinstance(dialect, str):
        raise GrammarError(
            f"flags is {clip(flags)} and dialect {clip(dialect)}; expected two strings, such as 'i' and 'python'"
        )
    found = regex_automaton(pattern, flags, dialect)
    if found.is_empty:
        raise EmptyLanguageError(
            f"no text matches {clip(pattern)} as a whole, so nothing could be written: look at what its anchors and look-arounds ask "
            "of the characters beside them"
        )
    return Regex(clip(pattern), found)


@on_own_stack
def load_choice(texts: Iterable[str | bytes]) -> Regex:
    """Some texts, for `build_store`: each whole text is one of them. One given twice counts once.

    Raises: GrammarError if there is none, or one is neither a str nor bytes.

    Example:
        >>> load_choice(["yes", "no"])
        <Regex choice of 2 texts: 5 states>
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise GrammarError(f"the choice is {a_type(texts)}; expected a list of texts{meant(texts, 'load_choice')}")
    found = []
    for text in texts:
        if not isinstance(text, str | bytes):
            hint = meant(texts, "load_choice")
            raise GrammarError(f"a text of the choice is {a_type(text)}; expected a str or bytes{hint}")
        try:
            found.append(text.encode() if isinstance(text, str) else bytes(text))
        except UnicodeEncodeError:
            raise GrammarError(f"the text {clip(text)} of the choice holds half a surrogate pair") from None
    if not found:
        raise GrammarError("the choice has no texts; expected at least one")
    return Regex(f"choice of {len(set(found))} texts", literals(found))


def meant(source: object, by: str) -> str:
    """As `analysis.loading.names.meant`. PERF: nothing here need wait for what reads grammars."""
    from maskwright.analysis.loading import names

    return names.meant(source, by)
