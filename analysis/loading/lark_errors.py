"""What Lark's loader says of a bad text, in one form.

The form is file:line:col, Lark's words, the line and a caret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Token, Tree
from lark import exceptions as lark_exceptions

from maskwright.analysis.errors import GrammarError, MaskwrightError
from maskwright.analysis.grammar.foreign import hint_at, language_of
from maskwright.analysis.grammar.lark_files import GrammarFiles, caret, offsets_of, suggestion
from maskwright.analysis.loading.names import meant

_SYNTAX = re.compile(r"(?P<what>.*?),? at line (?P<line>\d+),? column (?P<column>\d+)", re.DOTALL)
_NAMED = re.compile(
    r"'(\w+)'|`(\w+)`|\((_*[A-Za-z]\w*)\)|\((\".*\"i?)\)|<(\w+) :"
    r"|(?:rule|terminal|template|for|at|defined:|parameters:|Rule|Parameter|in) (\w+)"
)
_SHAPES = (
    ("Bad Range", r"~[ \t]*-?\d+[ \t]*\.\.[ \t]*-?\d+"),
    ("Inlined rules", r"(?<![?!])[?!]++(?=_)"),
    ("Aliasing not allowed in terminals", r"(?<=:)[^:\n]*->"),
)
"""Beginnings of messages that name no symbol, and what to look for in the text."""
_EXPLAINED = {
    "range": 'a range needs one character on each side, as in "a".."z"',
    "resolve_term_references": "a terminal uses one that is only declared and has no pattern",
    "template_usage": "a call names a template that is not defined, or has the wrong number of arguments",
}
"""What it means if one of these functions of Lark's loader fails."""


def translate(error: Exception, files: GrammarFiles, doing: str) -> MaskwrightError:
    """Lark's error as an error at its place in the text.

    error : what Lark's loader raised.
    files : the texts that it has read so far.
    doing : what it was doing, in words, for errors without an explanation.

    Returns the error without raising it.
    """
    behind = error.__context__
    if isinstance(behind, lark_exceptions.UnexpectedToken) and not isinstance(error, lark_exceptions.LarkError):
        return translate(behind, files, doing)  # Lark failed while it looked for a better message
    if isinstance(error, lark_exceptions.UnexpectedToken):
        expected = ", ".join(sorted(error.accepts or error.expected))
        what = f"Unexpected token {str(error.token)!r}; expected one of {expected}"
        at = error
        if error.token.type in ("_NL", "$END") and (opened := _opened(error)) is not None:
            what, at = "this group is not closed on its line; a line may be broken only before |", opened
        text = f"{what}, at line {at.line}, column {at.column}"
    else:
        text = str(error).strip()
    syntax = _SYNTAX.match(text) if isinstance(error, lark_exceptions.LarkError) else None
    if syntax:  # Lark parses a text as soon as it is opened
        line, column, what = int(syntax["line"]), int(syntax["column"]), syntax["what"]
        lines = files.texts[-1].split("\n")
        hint = meant(files.texts[0], "parse_grammar") if len(files.texts) == 1 else ""
        if (language := language_of(files.texts[-1])) is not None:
            what = f"{language} (Lark's parser says: {what}){hint}"
        elif 1 <= line <= len(lines) and (found := hint_at(lines[line - 1], column)) is not None:
            column, what = found[0], f"{what}; {found[1]}"
        else:
            what += hint
        return GrammarError(f"{files.shown[-1]}:{line}:{column}: {what}{caret(files.texts[-1], line, column)}")
    if isinstance(error, lark_exceptions.GrammarError):
        return _translate_symbol_error(error, text, files)
    for number, source in enumerate(files.texts):
        for raw, offset in offsets_of(source).literals.items():
            if problem := _regex_problem(raw):
                return GrammarError(files.at(f"Python's re refuses this pattern: {problem}", offset, number))
    step, cause = _failing_step(error)
    explained = _EXPLAINED.get(step) or f"{type(cause).__name__} in {step}: {str(cause).strip() or 'no message'}"
    message = f"Lark's loader stops while {doing}: {explained}"
    if step == "resolve_term_references":
        for number, source in enumerate(files.texts):
            offsets = offsets_of(source)
            for name in offsets.imports_and_declarations:
                if name in offsets.in_terminals:
                    return GrammarError(files.at(message, offsets.in_terminals[name], number))
    if "Inconsistent base_path for " in explained:
        module = explained.split("Inconsistent base_path for ")[1].rstrip(".")
        return files.import_error(module, "it is imported both from Lark's wheel and from the grammar's own folder")
    if "integer string conversion" in explained:
        return files.error_at(message, r"(?<!\d)\d{1000}")
    return files.error(message, *(str(token) for token in _tokens(getattr(error, "obj", None))))


def _translate_symbol_error(error: lark_exceptions.GrammarError, text: str, files: GrammarFiles) -> MaskwrightError:
    """Lark's message about a symbol or literal, at the symbol that it names."""
    if len(error.args) == 2:
        literal, reason = error.args
        raws = [raw for source in files.texts for raw in offsets_of(source).literals if literal in raw]
        return files.error(f"bad escape in a literal: {reason.msg}", *raws)
    for beginning, shape in _SHAPES:
        if text.startswith(beginning):
            return files.error_at(re.sub(r" for .* \((-?\d+\.\.)", r" (\1", text, flags=re.DOTALL), shape)
    if "newlines in regular expressions" in text:
        return files.error(text, *(raw for source in files.texts for raw in offsets_of(source).literals if "\n" in raw))
    names = [next(filter(None, groups)) for groups in _NAMED.findall(text)]
    if "not defined" in text and names:
        text += _nearest(names[0], files)
    if "marked to ignore" in text:  # Lark prints a set
        names.sort()
        return files.error(f"Ignored but not defined: {', '.join(names)}{_nearest(names[0], files)}", *names)
    if "more than once" in text:
        for number, source in enumerate(files.texts):
            for offset in offsets_of(source).definitions.get(names[0], ())[1:2]:
                return GrammarError(files.at(text, offset, number))
    text = re.sub(r"NonTerminal\(('\w+')\)", r"\1", re.sub(r"Rule (?='_?[A-Z])", "Terminal ", text))
    use = any(part in text for part in ("not defined", "Wrong number", "inside terminals"))
    return files.error(text, *names, use=use)


def _opened(error: lark_exceptions.UnexpectedToken) -> Any:
    """The innermost bracket that is open where Lark's parser stops, or None."""
    read = reversed(getattr(error.state, "value_stack", ()))
    return next((one for one in read if getattr(one, "type", "") in ("_LPAR", "_LBRA", "_LBRACE")), None)


def _nearest(name: str, files: GrammarFiles) -> str:
    """The end of a message on a name that is not defined: others of the text that has it."""
    for number, source in enumerate(files.texts):
        word, offsets = name if number == 0 else name.rpartition("__")[2] or name, offsets_of(source)
        if offsets.find(word) is not None:
            known = {**offsets.definitions, **offsets.imports_and_declarations}
            return suggestion(
                word, (), beside=[one for one in known if one != word and one.isupper() == word.isupper()]
            )
    return ""


def _regex_problem(raw: str) -> str | None:
    """What `re` says against a literal of a grammar's text; None if it accepts it."""
    if not raw.startswith("/"):
        return None
    body, _, flags = raw[1:].rpartition("/")
    try:
        re.compile(body, re.VERBOSE if "x" in flags else 0)
    except (re.error, OverflowError, ValueError) as error:
        return str(error)
    return None


def _failing_step(error: Exception) -> tuple[str, Exception]:
    """The name of the function of Lark's loader that failed, and the error in it."""
    if isinstance(error, lark_exceptions.VisitError):
        return error.rule, error.orig_exc
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return (traceback.tb_frame.f_code.co_name if traceback else "?"), error


def _tokens(tree: object) -> Iterator[Token]:
    """The tokens of a tree of Lark's; none for any other object."""
    if isinstance(tree, Tree):
        yield from tree.scan_values(lambda value: isinstance(value, Token))


def recursion_error(error: BaseException | None) -> RecursionError | None:
    """The RecursionError that an error is, or that Lark has put into it; None if there is none."""
    while error is not None and not isinstance(error, RecursionError):
        error = error.__cause__ or error.__context__
    return error
