"""What a command's argument stands for: a grammar, a JSON schema or a pattern, and how it is read."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import is_tensors

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.analysis.grammar import Grammar
    from maskwright.analysis.schema.style import Style
    from maskwright.stores.sources import Constraint

Syntax = Literal["lark", "schema", "regex", "choice", "gbnf", "ebnf", "llguidance"]


OF_SCHEMAS = (
    "style", "whitespace", "key_order", "escapes", "no_additional_properties", "formats", "lenient", "documents",
)  # fmt: skip
OF_LARK = ("start", "lexing", "reserved", "conflicts", "soft", "restrict")
"""The fields of `GrammarOptions` that are for schemas, and those that are for grammars in Lark."""
_OF_ALL_COMPOSITIONS = ("analyze", "export", "info", "complete", "serve-check", "warm-up")
_OF_LARK_FILES = (*_OF_ALL_COMPOSITIONS, "lint", "explain", "validate", "learn")
"""The commands that take any composition, and those that take Lark files with parts."""
_SUFFIXES: dict[str, Syntax] = {".lark": "lark", ".json": "schema", ".gbnf": "gbnf", ".ebnf": "ebnf"}


class GrammarOptions(NamedTuple):
    """The options that say how a grammar or a schema is read. None stands for the default.

    The first six are arguments of `load_grammar`; those from `style` on are of `load_schema`. What
    stands here of each is its help, see `command`.

    start RULE : The start symbol.
    lexing : How a text is cut into lexemes: contextual, the longest that the parser can take; longest, the longest of all; nfa, in
        every way that the terminals allow, for analysis only: it is slow. By default as the grammar says, else contextual.
    reserved : Lexing contextual: which string literals are never names, even where only a name may stand: none, words, or all that
        a pattern matches too. By default as the grammar says, else none.
    conflicts : What the parser does with LALR conflicts: follow all, or shift as Lark does. By default as the grammar says, else
        all where one lexer can serve all parses.
    soft KEYWORD : A keyword of the grammar that may be a name too, as match in Python; may be repeated. By default as the grammar
        says.
    restrict NAME[=VALUE] : A restriction of style or safety, such as no_comments, function_name=[a-z_]+ or imports=os,numpy.* for
        python, or a bound on a terminal's lexemes, length:STRING=..80; may be given again. An unknown name lists those of the
        grammar.
    syntax --from : What the constraint is written in. By default the file's suffix says it (.lark, .json, .gbnf, .ebnf), then the
        text; choice: one text a line.
    style S : How a schema's JSON is written: natural, compact, json.dumps, indent2 or any. By default natural.
    whitespace W : Of a schema's texts: natural, compact, json.dumps, indent2 (or another number of blanks), any, at most so many
        characters in a row, or a regular expression. By default as the style has it.
    key_order : Of a schema's texts: any, or that of the schema's properties. By default any.
    escapes : Of a schema's strings and keys: natural, as json.dumps writes them; minimal, only those that JSON wants; any of
        JSON's. By default as the style has it.
    no_additional_properties : Of a schema's objects that list properties: no others, unless it allows them.
    formats : What a schema's format says: assert, what its document says; natural, dates, times and durations as programs write
        them; annotate, nothing. By default assert.
    lenient : Leave out of a schema what no mask can say exactly, and say what.
    documents FOLDER : The documents that a schema refers to: .json files, known by their $id and by their path.
    """

    start: str | None = None
    lexing: Literal["longest", "contextual", "nfa"] | None = None
    reserved: Literal["none", "words", "all"] | None = None
    conflicts: Literal["all", "shift"] | None = None
    soft: list[str] | None = None
    restrict: list[str] | None = None
    syntax: Syntax | None = None
    style: str | None = None
    whitespace: str | None = None
    key_order: Literal["any", "schema"] | None = None
    escapes: Literal["natural", "minimal", "any"] | None = None
    no_additional_properties: bool = False
    formats: Literal["assert", "natural", "annotate"] | None = None
    lenient: bool = False
    documents: Path | None = None

    def load(self, source: str) -> Grammar:
        """The grammar in Lark that a command's argument names, read with these options.

        Raises: as `load_grammar`; MaskwrightError for what is no such grammar, or if options of
        others are given.
        """
        from maskwright.analysis.loading import load_grammar

        if names_parts(source):
            raise MaskwrightError(
                f"{source} names parts of other languages (%schema, %grammar, %regex, %token); this command is for one language: give it "
                f"a part's own file; {', '.join(_OF_LARK_FILES)} take the whole"
            )
        found = syntax_of(source, self)
        if found != "lark":
            raise MaskwrightError(f"{source} is read as {found}; this command is for grammars in Lark (--from lark)")
        self.refuse(OF_SCHEMAS, source, "a JSON schema")
        # `load_grammar` takes a string with a line feed for a grammar's text, but a file's name may
        # have one too.
        options: dict[str, Any] = {name: getattr(self, name) for name in OF_LARK}
        return load_grammar(path_or_text(source), **options)

    def json_style(self) -> Style:
        """How the JSON of a schema is written. Raises: UnknownNameError for what no style has."""
        from maskwright.analysis.schema.style import read_style

        spaces = self.whitespace or None
        whitespace = int(spaces) if spaces and spaces.isdecimal() and len(spaces) < 10 else spaces
        return read_style(self.style or "natural", whitespace, self.key_order, self.escapes)

    def refuse(self, names: tuple[str, ...], source: str, wanted: str) -> None:
        """Check that none of some options is given.

        Raises: MaskwrightError naming the first that is, and what it is for.
        """
        for name in names:
            if getattr(self, name):
                raise MaskwrightError(f"{source} is not {wanted}, and {option_of(name)} is for one: leave it out")

    def load_constraint(self, source: str) -> Constraint:
        """The grammar, schema or pattern that a command's argument names, read with these options.

        Raises: as `read`; MaskwrightError for a composition.
        """
        from maskwright.analysis.composition import Composition

        found = self.load(source) if syntax_of(source, self) == "lark" else self.read(source)
        if isinstance(found, Composition):
            what = f"has other languages inside ({found.parts[0].name})" if found.parts else "is a structural tag"
            raise MaskwrightError(
                f"{source} {what}, which this command does not read; {', '.join(_OF_ALL_COMPOSITIONS)} do"
            )
        return found

    def read(self, source: str) -> Constraint | Composition:
        """The grammar, schema, pattern or composition that a command's argument names.

        Raises: as `load_grammar`, `load_schema`, `load_regex`, `read_constraint`,
        `read_structural_tag` and `read_composition`; MaskwrightError for options that are for another kind.
        """
        if is_composition(source, self):
            from maskwright.analysis.composition import read_composition

            return read_composition(path_or_text(source))
        syntax = syntax_of(source, self)
        if syntax == "lark":
            return self.load(source)
        self.refuse(OF_LARK, source, "a grammar in Lark")
        if syntax == "schema":
            from maskwright.analysis.schema.load import load_schema, parse_schema

            if '"structural_tag"' in (text := text_of(source)):
                from maskwright.analysis.composition import read_structural_tag

                values = parse_schema(text, source)
                if isinstance(values, dict) and values.get("type") == "structural_tag":
                    self.refuse(OF_SCHEMAS, source, "a JSON schema")
                    return read_structural_tag(values)
            return load_schema(
                path_or_text(source),
                style=self.json_style(),
                lenient=self.lenient,
                documents=self.documents,
                additional_properties=not self.no_additional_properties,
                formats=self.formats,
            )
        self.refuse(OF_SCHEMAS, source, "a JSON schema")
        if syntax == "regex" or syntax == "choice":
            from maskwright.analysis.schema.text_patterns import load_choice, load_regex

            text = text_of(source).removesuffix("\n").removesuffix("\r")
            return load_regex(text) if syntax == "regex" else load_choice(text.splitlines())
        from maskwright.analysis.dialects import read_constraint

        return read_constraint(path_or_text(source), syntax)


DEFAULTS = GrammarOptions()


def is_composition(source: str, options: GrammarOptions) -> bool:
    """Whether an argument is a Lark file that names parts of other languages.

    Raises: MaskwrightError for options that a composition does not take.
    """
    if not is_constraint(source, options) or syntax_of(source, options) != "lark" or not names_parts(source):
        return False
    options.refuse((*OF_LARK, *OF_SCHEMAS), source, "read with options, since it names parts of other languages")
    return True


def names_parts(source: str) -> bool:
    """Whether an argument is a grammar that names parts of other languages."""
    from maskwright.analysis.loading.names import has_directives

    return has_directives(path_or_text(source))


def option_of(name: str) -> str:
    """The option of a field of `GrammarOptions`, as it is written."""
    return "--from" if name == "syntax" else f"--{name.replace('_', '-')}"


def check_is_store(source: str, options: GrammarOptions) -> None:
    """Check that a file begins as a store does, and that no option for reading a grammar is given.

    Raises: MaskwrightError saying how a file of another kind is read; or naming the first such
        option, since the store's grammar is fixed.
    """
    if os.path.isfile(source) and not is_tensors(source):
        raise MaskwrightError(
            f"{source} does not begin as a store does. If it holds choices, a pattern, a schema or a grammar, say which: --from "
            f"{', '.join(get_args(Syntax))}. If it was a store, it is damaged: export it again"
        )
    if options.restrict:
        raise MaskwrightError(
            f"{source} is a store, whose grammar is fixed: restrict the grammar, and build a store from it"
        )
    for name, value in options._asdict().items():
        if value:
            raise MaskwrightError(
                f"{source} is a store, whose grammar is fixed: {option_of(name)} is for a grammar, and for the store that you build from it"
            )


def path_or_text(source: str) -> Any:
    """A path for an argument that is an existing file, the text of a pipe, else the argument."""
    return Path(source) if os.path.isfile(source) else text_of(source)


def text_of(source: str) -> str:
    """The text of a file or pipe, or of the argument itself."""
    from maskwright.analysis.grammar.lark_files import read_file

    if (pipe := _pipe(source)) is not None:
        return _text_of_pipe(source, pipe)
    return read_file(source) if os.path.isfile(source) else source


def _pipe(source: str) -> int | None:
    """The number of a pipe that an argument names, as ``/dev/stdin`` or ``<(command)`` do, or None."""
    try:
        found = os.stat(source)
    except (OSError, ValueError):
        return None
    return found.st_ino if stat.S_ISFIFO(found.st_mode) else None


def is_pipe(source: str) -> bool:
    """Whether a command's argument names a pipe."""
    return _pipe(source) is not None


@cache  # what was read from a pipe is gone, and several questions are asked about it
def _text_of_pipe(source: str, pipe: int) -> str:
    from maskwright.analysis.grammar.lark_files import read_file

    text = read_file(source)
    return text if "\n" in text else text + "\n"  # a line feed tells a text from a name


def syntax_of(source: str, options: GrammarOptions) -> Syntax:
    """What a constraint is written in: what the options say, else its name, else its text."""
    from maskwright.analysis.loading.names import known_grammars

    if options.syntax is not None:
        return options.syntax
    is_piped = is_pipe(source)
    is_path = "\n" not in source and not is_piped
    if source in known_grammars() or source.startswith("lark:"):
        return "lark"
    if is_path and (found := _SUFFIXES.get(PurePath(source).suffix.lower())) is not None:
        return found
    if is_piped or os.path.isfile(source) or source.lstrip().startswith("{") or "::=" in source:
        from maskwright.analysis.fronts import detect

        return detect(text_of(source), source if is_path else None)
    return "lark"


def is_constraint(source: str, options: GrammarOptions) -> bool:
    """Whether a command's argument is a grammar, a schema or a pattern. Anything else is a store file."""
    from maskwright.analysis.grammar.lark_files import is_text
    from maskwright.analysis.loading.names import known_grammars

    return (
        options.syntax is not None
        or source in known_grammars()
        or source.startswith("lark:")
        or source.lower().endswith(tuple(_SUFFIXES))
        or source.lstrip().startswith("{")
        or "::=" in source
        or is_text(source)
        or is_pipe(source)
    )
