"""The texts that one grammar is made of, and places in them.

Reads files, serves `%import`, and shows places as file:line:col with a caret.
"""

from __future__ import annotations

import bisect
import difflib
import functools
import itertools
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lark.load_grammar import stdlib_loader

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, NestingError, UnknownNameError
from maskwright.analysis.files import is_tensors, read_file_bytes
from maskwright.analysis.grammar.foreign import language_of
from maskwright.analysis.nesting import MOST_NESTED

MAX_BYTES = 16 << 20
"""A file of more bytes than this is not a grammar."""
MAX_FILES = 100
"""Files that one grammar may import. Only imports that form a circle need more."""
MAX_RULE_SIZE = 100_000
"""Symbols that one rule may have once Lark multiplies out its groups, ``[]``, ``?`` and ``~``."""
MAX_GROWN_SIZE = 300_000
"""Symbols, in total, of the rules that grow out of proportion in this way."""
MAX_PATTERN_SIZE = 1_000_000
"""Characters that one terminal may have once the terminals in it are copied into it."""
TERMINAL_GROWS = (
    f"terminal {{}} grows past {MAX_PATTERN_SIZE:,} characters once its parts are written out; shorten its repetitions"
)
MAX_TEMPLATE_CALLS = 2_000
"""Different calls of templates in one grammar; also characters of one call written out."""

OR_PATH = "; or a path to a .lark file"


def short_name(name: str) -> str:
    """The repr of a name, shortened in the middle if the name is longer than 80 characters."""
    return repr(name if len(name) <= 80 else f"{name[:40]}...{name[-30:]}")


def suggestion(word: str, known: Sequence[str], more: str = "", beside: Sequence[str] = ()) -> str:
    """The end of a message that says which names a word could have been meant for.

    known : the names that exist. All are listed.
    more : text behind the list.
    beside : other names that are suggested if they are near, but not listed.

    Example: `suggestion("jsn", ["json"])` is `"; did you mean 'json'? (known: json)"`.
    """
    close = difflib.get_close_matches(word[:200], [*known, *beside], n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"{hint} (known: {', '.join(known)}{more})" if known else hint


def read_file(shown: str, known: Sequence[str] = ()) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    shown : the path, as messages show it.
    known : names of grammars that a message suggests if there is no such file.

    Raises: UnknownNameError if the path is empty or does not exist; GrammarError if it is a
    directory or no regular file, has more than MAX_BYTES, cannot be read, or is not UTF-8.
    """
    if not shown:
        raise UnknownNameError("the grammar's name is empty" + suggestion(shown, known, OR_PATH))
    path, named = Path(shown), f"grammar file {short_name(shown)}"
    try:
        if path.is_dir():
            raise GrammarError(f"{named} is a directory; expected a .lark file")
        data = read_file_bytes(shown, MAX_BYTES, "a grammar", GrammarError)
    except (FileNotFoundError, NotADirectoryError) as error:
        looks_like_file = path.suffix or len(path.parts) > 1
        what = f"{named} does not exist" if looks_like_file else f"no grammar is named {short_name(shown)}"
        raise UnknownNameError(what + suggestion(shown, known, OR_PATH, _neighbours(path))) from error
    except GrammarError:
        _refuse_store(shown, named)
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise GrammarError(f"{named} cannot be read: {reason}") from error
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        _refuse_store(shown, named)
        at = f"byte {data[error.start]:#04x} at offset {error.start}"
        raise GrammarError(f"{named} is not UTF-8: {at}; save it as UTF-8") from error


def _refuse_store(shown: str, named: str) -> None:
    """Raises: GrammarError if a file that is no text of a grammar is a store."""
    if is_tensors(shown):
        raise GrammarError(
            f"{named} is a safetensors file, as stores are, not a grammar: name the grammar that it was built from; or leave --tokenizer "
            "out where the command reads stores (mw.load_store in Python)"
        ) from None


def _neighbours(path: Path) -> list[str]:
    """The grammar files in a path's folder whose names can be printed; at most 500."""
    found = sorted(map(str, path.parent.glob("*.lark"))) if os.path.isdir(path.parent) else []
    return [name for name in found if name.isprintable()][:500]


class GrammarFiles:
    """The texts that one grammar is made of, the main one first.

    Lark calls the object to open what `%import` names.

    main : what messages call the main text.
    shown : what messages call each text.
    texts : the texts, with line feeds only.
    """

    def __init__(self, main: str) -> None:
        self.main = main
        self.shown: list[str] = []
        self.texts: list[str] = []

    def add(self, shown: str, text: str) -> str:
        """Add a text and return it in the form that Lark must read.

        The returned text has the same lines and columns as the one that is kept.

        Raises: GrammarError if the text holds a NUL character or a literal that does not end;
        NestingError for brackets too deep inside one another;
        LimitError if a terminal has more than MAX_PATTERN_SIZE / 10 symbols once the terminals in
        it are written out.
        """
        text = with_line_feeds(text)
        self.shown.append(shown)
        self.texts.append(text)
        if "\x00" in text:
            raise GrammarError(f"{shown}: it holds a NUL character, so it is not a text file")
        # Lark's pattern for literals takes exponential time on an open one with many backslashes.
        opened = offsets_of(text).open_literal
        if opened is not None:
            message = "a string or regular expression begins here and does not end"
            if (language := language_of(text)) is not None:
                message = f"{language} (in Lark's language, {message})"
            raise GrammarError(self.at(message, opened, len(self.texts) - 1))
        deep = offsets_of(text).too_deep
        if deep is not None:
            message = f"brackets stand more than {MOST_NESTED} deep inside one another; give the inner ones rules of their own"
            raise NestingError(self.at(message, deep, len(self.texts) - 1))
        # Lark follows every path through terminals that contain terminals: exponentially many.
        sizes: dict[str, int] = {}
        for name in offsets_of(text).parts:
            if n_parts(name, offsets_of(text).parts, sizes) > MAX_PATTERN_SIZE // 10:
                raise self.error(TERMINAL_GROWS.format(name), name, kind=LimitError)
        return _without_long_gaps(text)

    def replace_main(self, text: str) -> None:
        """Let errors show another main text than Lark has read, with the same lines."""
        self.texts[0] = with_line_feeds(text)

    def __call__(self, base_path: Any, grammar_path: str) -> tuple[Any, str]:
        """The path and text of an imported file: Lark's protocol for sources.

        base_path : the importing file's folder for `%import .relative`, else None.
        grammar_path : path of the imported file relative to it.

        Raises: LimitError after more than MAX_FILES files; GrammarError if the file cannot be read.
        """
        module = os.path.splitext(grammar_path)[0].replace(os.sep, ".")
        if len(self.texts) > MAX_FILES:
            what = f"more than {MAX_FILES} files are imported"
            raise LimitError(f"{self.main}: {what}; do the imports of {module} form a circle?")
        try:
            if base_path == "":
                raise GrammarError("it is relative, but the text does not come from a file; pass folder=...")
            if isinstance(base_path, str):
                where: Any = os.path.join(base_path, grammar_path)
                text = read_file(where)
            else:
                where, text = stdlib_loader(base_path, grammar_path)
        except OSError as error:
            library = ["common", "lark", "python", "unicode"]
            raise self.import_error(module, "Lark's wheel has no such grammar" + suggestion(module, library)) from error
        except MaskwrightError as error:
            raise self.import_error(module, str(error)) from error
        return where, self.add(where if isinstance(where, str) else grammar_path, text)

    def import_error(self, module: str, reason: str) -> GrammarError:
        """An error at the first `%import` of a module, in the last text that has one."""
        pattern = re.compile(rf"^[ \t]*+%import[ \t]++(?:\.[ \t]*+)?{re.escape(module)}\b", re.MULTILINE)
        for number in reversed(range(len(self.texts))):
            if match := pattern.search(self.texts[number]):
                return GrammarError(self.at(f"cannot import {module!r}: {reason}", match.start(), number))
        return GrammarError(f"{self.shown[-1]}: cannot import {module!r}: {reason}")

    def at(self, message: str, offset: int, number: int = 0) -> str:
        """``file:line:col: message`` with the line and a caret below.

        offset : index in the text `texts[number]`.
        """
        line, column = line_and_column(self.texts[number], offset)
        return f"{self.shown[number]}:{line}:{column}: {message}{caret(self.texts[number], line, column)}"

    def error(
        self, message: str, *names: str, kind: type[MaskwrightError] = GrammarError, use: bool = False
    ) -> MaskwrightError:
        """An error at the first of `names` that some text holds, or without a place if none does.

        names : symbols or literals, as the texts write them.
        kind : the error's class.
        use : whether the place is the use of the name rather than its definition.
        """
        for name in names:
            for number, text in enumerate(self.texts):
                offset = offsets_of(text).find(name if number == 0 else name.rpartition("__")[2] or name, use)
                if offset is not None:
                    return kind(self.at(message, offset, number))
        return kind(f"{self.main}: {message}")

    def error_at(self, message: str, shape: str) -> GrammarError:
        """An error at the last character of the first match of a regular expression in some text.

        shape : the regular expression. Without a match the error has no place.
        """
        for number, text in enumerate(self.texts):
            if match := re.search(shape, text):
                return GrammarError(self.at(message, match.end() - 1, number))
        return GrammarError(f"{self.main}: {message}")


def with_line_feeds(text: str) -> str:
    """The text with a line feed at the end of each line, as Lark must read it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# PERF: linear in blanks, names and literals. Quantifiers are possessive, and a run of `_` that
# begins no name is passed in one step.
COMMENT_OR_LITERAL = r"""(?P<comment>(?://|\#)[^\n]*+)
      | (?P<literal>"(?:\\.|[^"\\\n]++)*+"i? | /(?!/)(?:\\[\s\S]|[^/\\]++)*+/[imslux]*)
      | (?P<open>["/])"""
"""What must be passed over as a whole to find anything else in Lark's language, or in llguidance's
dialect of it; under VERBOSE. `open` is where a literal begins that does not end."""
_TOKEN = re.compile(
    COMMENT_OR_LITERAL
    + r"""
      | %(?P<directive>[a-z]+) | (?P<bracket>[([{]) | (?P<closing>[)\]}])
      | _++(?![A-Za-z])
      | (?P<name>_*+[A-Za-z][A-Za-z0-9_]*+)
        (?P<colon>(?=[ \t]*+(?:\{[^{}\n]*+\}[ \t]*+)?(?:\.[ \t]*+[+-]?\d++[ \t]*+)?:))?""",
    re.VERBOSE,
)
_EMPTY_LINES = re.compile(r"\n{1000,}+")


@dataclass(slots=True)
class Offsets:
    """Offsets of symbols in a grammar's text; comments and the insides of literals are left out.

    definitions : for each rule and terminal, where it is defined.
    imports_and_declarations : for each name, the first `%import` or `%declare` that has it.
    uses : for each name, all other occurrences.
    literals : for each literal, as written, its first occurrence; in a rule if there is one. For
        each range, by the pattern that Lark makes of it, the first one.
    ignores : the `%ignore` directives.
    in_terminals : for each name, its first use in the definition of a terminal.
    parts : for each terminal, the names in its definition.
    open_literal : where a literal begins that does not end; nothing behind it is looked at.
    too_deep : the first bracket that has `MOST_NESTED` others around it; nothing behind it is
        looked at.
    """

    definitions: dict[str, list[int]] = field(default_factory=dict)
    imports_and_declarations: dict[str, int] = field(default_factory=dict)
    uses: dict[str, list[int]] = field(default_factory=dict)
    literals: dict[str, int] = field(default_factory=dict)
    ignores: list[int] = field(default_factory=list)
    in_terminals: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    open_literal: int | None = None
    too_deep: int | None = None

    def find(self, name: str, use: bool = False) -> int | None:
        """Where a symbol is defined, else imported or declared, else used: an offset, or None.

        A literal is found where it stands first. A terminal that Lark made of `%ignore` is found at
        that directive.

        use : whether to prefer uses to imports and declarations, and these to definitions.
        """
        if name.startswith("__IGNORE_"):
            number = int(name.removeprefix("__IGNORE_"))
            return self.ignores[number] if number < len(self.ignores) else None
        offsets = [
            *self.definitions.get(name, ())[:1],
            self.imports_and_declarations.get(name),
            *self.uses.get(name, ())[:1],
        ]
        found = [offset for offset in (reversed(offsets) if use else offsets) if offset is not None]
        return found[0] if found else self.literals.get(name)


@functools.lru_cache(maxsize=16)
def offsets_of(text: str) -> Offsets:
    """The offsets of a grammar's text.

    Cost: O(text), cached for the last 16 texts.
    """
    offsets = Offsets()
    in_rule: set[str] = set()
    directive, line_end, defining, depth = "", 0, "", 0
    before: re.Match[str] | None = None
    for match in _TOKEN.finditer(text):
        offset, name, literal = match.start(), match["name"], match["literal"]
        if match["open"]:
            offsets.open_literal = offset
            break
        if literal and before is not None and text[before.end() : offset].strip(" \t") == "..":
            offsets.literals.setdefault(f"[{before[0][1:-1]}-{literal[1:-1]}]", before.start())
        before = match if literal else None
        if match["bracket"]:
            depth += 1
            if depth > MOST_NESTED:
                offsets.too_deep = offset
                break
        elif match["closing"]:
            depth = max(0, depth - 1)
        elif match["directive"]:
            directive, defining = match["directive"], ""
            if offset >= line_end:
                line_end = text.find("\n", offset)
                line_end = len(text) if line_end < 0 else line_end
            if directive == "ignore":
                offsets.ignores.append(offset)
        elif literal and (literal not in offsets.literals or (defining.islower() and literal not in in_rule)):
            offsets.literals[literal] = offset
            if defining.islower():
                in_rule.add(literal)
        elif name and match["colon"] is not None:
            offsets.definitions.setdefault(name, []).append(offset)
            defining = name
        elif name and directive in ("import", "declare") and offset < line_end:
            offsets.imports_and_declarations.setdefault(name, offset)
        elif name:
            offsets.uses.setdefault(name, []).append(offset)
            if defining.isupper():
                offsets.in_terminals.setdefault(name, offset)
                offsets.parts.setdefault(defining, []).append(name)
    return offsets


_HELPER = re.compile(r"__(?P<rule>.+)_(?:star|plus|repeat_a\d+_b\d+(?:_opt)?)_\d+$")


def _without_long_gaps(text: str) -> str:
    """The text with an empty comment in each line of a very long gap.

    Lark's pattern for line feeds takes quadratic time in such gaps.
    """
    gaps = [gap.span() for gap in _EMPTY_LINES.finditer(text)]
    if not gaps:
        return text
    literals = [match.span() for match in _TOKEN.finditer(text) if match["literal"]]
    starts = [start for start, _ in literals]
    parts, done = [], 0
    for start, end in gaps:
        before = bisect.bisect_right(starts, start) - 1
        if before < 0 or literals[before][1] <= start:
            parts += [text[done : start + 1], "//\n" * (end - start - 1)]
            done = end
    return "".join([*parts, text[done:]])


@functools.lru_cache(maxsize=16)
def _line_starts(text: str) -> array[int]:
    return array("q", itertools.accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both counted from 1."""
    starts = _line_starts(text)
    line = bisect.bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


def position_of(text: str, name: str) -> tuple[int, int]:
    """Line and column of a symbol's definition in a text, or (0, 0).

    If the text does not define the symbol, its import or declaration counts, else its first use.

    >>> position_of('// NUMBER: no\\nstart: NUMBER "NUMBER"\\nNUMBER.2: "1"', "NUMBER")
    (3, 1)
    """
    offset = offsets_of(text).find(name)
    return (0, 0) if offset is None else line_and_column(text, offset)


def rule_name(name: str) -> str:
    """The rule that the author wrote, for a nonterminal that Lark made of it.

    >>> [rule_name(name) for name in ("__expr_star_3", "pair{item}", "expr", "expr (not empty)")]
    ['expr', 'pair', 'expr', 'expr']
    """
    name = name.partition(" ")[0]
    match = _HELPER.match(name)
    return (match["rule"] if match else name).partition("{")[0]


def caret(text: str, line: int, column: int, width: int = 120) -> str:
    """The line with a caret below the column, indented; "" if there is no such line.

    It begins with a line feed, so that it can follow a message.

    line, column : counted from 1.
    width : characters that are shown of a longer line.
    """
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return ""
    cut = max(0, column - 1 - width // 2) if len(lines[line - 1]) > width else 0
    shown = "".join(c if c.isprintable() else " " for c in lines[line - 1][cut : cut + width])
    return f"\n    {shown}\n    {' ' * (column - 1 - cut)}^"


def n_parts(name: str, parts: Mapping[str, Sequence[str]], memo: dict[str, int]) -> int:
    """How many symbols a terminal's definition has once the terminals in it are written out.

    parts : for each terminal, the names in its definition.
    memo : results by name; changed.
    """
    todo = [name]
    while todo:
        inside = parts.get(todo[-1], ())
        if todo[-1] not in memo:
            memo[todo[-1]] = 0  # for a terminal inside itself, which Lark refuses
            todo += [part for part in inside if part not in memo]
        else:
            one = todo.pop()
            memo[one] = memo[one] or 1 + sum([memo[part] for part in inside])
    return memo[name]


_RULE = re.compile(r"[?!_]*[A-Za-z]\w*(\.-?\d+)?[ \t]*:([ \t]|[\"(\[~]|/[^/\\]*/|$)")


def is_text(source: object) -> bool:
    r"""Whether a source is a grammar's text, not its name.

    A text has a line feed, or is one rule.

    >>> [is_text(source) for source in ('start: "a"', "A: /x/", "%import common.INT\nstart: INT")]
    [True, True, True]
    >>> [is_text(source) for source in ("lark:python", r"C:\my.lark")]
    [False, False]
    """
    return isinstance(source, str) and ("\n" in source or _RULE.match(source.lstrip()) is not None)
