"""From a request's kind and text to a constraint, or an error for the one who sent it.

A request comes from anyone. Its text is never taken for the path of a file, its size is limited,
and whatever goes wrong is a MaskwrightError.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from maskwright.analysis.arguments import a_type, clip, need_type
from maskwright.analysis.composition import Composition, read_composition, read_structural_tag, read_tools
from maskwright.analysis.composition.compose import of_host
from maskwright.analysis.dialects import read_llguidance
from maskwright.analysis.dialects.x_guidance import read_guided
from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, SchemaError, UnknownNameError
from maskwright.analysis.fronts import detect
from maskwright.analysis.fronts.gbnf import read_rules
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.loading.names import DIRECTIVE, known_grammars
from maskwright.analysis.nesting import on_own_stack, read_json
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, escaped
from maskwright.analysis.schema.load import as_asked, parse_schema
from maskwright.analysis.schema.mistakes import idle_keywords, places_of
from maskwright.analysis.schema.style import read_style
from maskwright.analysis.schema.text_patterns import load_choice, load_regex
from maskwright.serving.options import Kind, RequestLimits, RequestOptions, as_kind

if TYPE_CHECKING:
    from maskwright.stores.sources import Constraint

_JSON_OBJECT: Mapping[str, Any] = {"type": "object"}
_NAME = "<request>"
_LONGEST_PATTERN = 1_000
_AFTER_BRACE = re.compile(r"\{([ \t\d,]+)")
_MOST_AFTER_BRACES = 1 << 22
"""BOUND: the sum of the cubes of the lengths; a fifth of a second."""

_LARK_PIECE = re.compile(
    r'//[^\n]*|#[^\n]*|(?P<literal>"(?:\\.|[^"\\\n])*+"?)|/(?:\\.|[^/\\])*+/?'
    r"|(?P<json>%(?:json|schema[ \t]+\w+)\s*+\{)|(?P<brace>\{)|\}",
    re.DOTALL,
)
"""A comment, a string, a pattern, the beginning of a schema, a brace.

PERF: what does not end is read once, to the end of its line or of the text.
"""
_MOST_LITERALS = 20_000
"""BOUND: different string literals, each of which is a state of the lexer at least."""

_TOOLS = tuple(inspect.signature(read_tools).parameters)
"""The members of a grammar that is a JSON object with tools."""
ARROWS: tuple[Literal["gbnf", "ebnf"], ...] = ("gbnf", "ebnf")
"""Languages whose rules have arrows (`::=`); a text may be right in both."""
Language = Literal["", "gbnf", "ebnf", "llguidance"]
"""What a request may say of the language of its grammar."""

_logger = logging.getLogger(__name__)


class Request(NamedTuple):
    """A constraint as a request brought it, checked for its form.

    language : that of a grammar; "" to tell it by its text.
    root : the rule of whole texts, in EBNF.

    Equal requests ask for the same masks.
    """

    kind: Kind
    spec: str
    options: RequestOptions
    language: Language = ""
    root: str = "root"

    @property
    def key(self) -> tuple[str, str, RequestOptions, str, str]:
        """What identifies it, in less memory than its text takes."""
        return self._replace(spec=hashlib.sha256(self.spec.encode()).hexdigest())


class RequestReader:
    """Reads the constraints of requests.

    stores : names of stores, which requests of kind `grammar` may name.
    limits : see `RequestLimits`; only the size counts here.
    strict_keywords : whether to refuse a schema with a keyword that JSON Schema does not have,
        unless it begins with ``x-``. By default such keywords say nothing, as JSON Schema wants it.
    """

    def __init__(
        self,
        stores: Collection[str] = (),
        limits: RequestLimits = RequestLimits(),  # noqa: B008 - it cannot change
        strict_keywords: bool = False,
    ) -> None:
        self.stores = frozenset(stores)
        self.limits = limits
        self._is_strict = strict_keywords

    def request(
        self,
        kind: str,
        spec: str,
        options: RequestOptions | None = None,
        language: Language = "",
        root: str = "root",
    ) -> Request:
        """The request, if its form is right: kind, type, size, characters, options that apply.

        kind, spec, options : see `RequestCompiler.check`. language, root : see `Request`.

        Raises: UnknownNameError for an unknown kind; MaskwrightError for the rest.
        """
        found = as_kind(kind)
        options = options or RequestOptions()
        need_type("options", options, RequestOptions, "RequestOptions")
        need_type(f"the text of a constraint of kind {found}", spec, str, "a str")
        if isinstance(options.whitespace, str) and len(options.whitespace) > _LONGEST_PATTERN:
            raise LimitError(f"the pattern of white space has more than {_LONGEST_PATTERN:,} characters")
        self._check_text(found, spec)
        return Request(found, "" if found == "json_object" else spec, options.checked(found), language, root)

    def _check_text(self, kind: Kind, spec: str) -> None:
        most = self.limits.most_bytes
        if len(spec) > most:
            raise LimitError(f"the text of the {kind} has {len(spec):,} characters; at most {most:,} bytes are taken")
        try:
            size = len(spec.encode())
        except UnicodeEncodeError as error:
            raise MaskwrightError(
                f"the text of the {kind} holds half a surrogate pair at position {error.start}; send whole characters"
            ) from None
        if size > most:
            raise LimitError(f"the text of the {kind} has {size:,} bytes; at most {most:,} are taken")
        if kind not in ("json_object", "regex") and not spec.strip():
            raise MaskwrightError(f"the text of the {kind} is empty")
        if "\0" in spec:
            raise MaskwrightError(
                f"the text of the {kind} holds a NUL character at position {spec.index(chr(0))}; write \\x00 or \\u0000 where one is meant"
            )

    def store_of(self, request: Request) -> str | None:
        """The name of the configured store that a request names; None if it brings a constraint."""
        name = request.spec.strip()
        return name if request.kind == "grammar" and name in self.stores else None

    @on_own_stack
    def read(self, request: Request) -> Constraint | Composition:
        """The constraint of a request that names no store.

        Raises: SchemaError with the JSON pointer, GrammarError with the place, LimitError,
            TerminalError: all MaskwrightErrors, whatever the text is.
        """
        try:
            found: Constraint | Composition = guarded(request, lambda: self._read(request), "read")
        except SchemaError as error:
            # a request has no such argument
            said = str(error).replace(", or leave it out by lenient=True", "")
            raise SchemaError(said, error.pointer) from error
        return found

    def _read(self, request: Request) -> Constraint | Composition:
        kind, spec, options = request[:3]
        if kind in ("json", "json_object"):
            is_any = kind == "json_object"
            schema = dict(_JSON_OBJECT) if is_any else self._schema(spec)
            style = read_style("natural", options.whitespace, options.key_order, options.escapes)
            changes = as_asked(schema, options.additional_properties, options.formats)[1]
            return read_guided(schema, style, "JSON object" if is_any else None, changes)
        if kind == "regex":
            return load_regex(spec)
        if kind == "choice":
            return load_choice(_choice(spec))
        if kind == "grammar":
            return self._grammar(request)
        said = {name: each for name, each in options._asdict().items() if name != "key_order"}
        return read_structural_tag(spec, read=read_guided, **said)

    def _schema(self, spec: str) -> Any:
        schema = parse_schema(spec)
        if not isinstance(schema, dict | bool):
            raise SchemaError(f"the schema is {a_type(schema)}; expected a JSON object or a bool")
        if self._is_strict:
            _refuse_unknown_keywords(schema)
        return schema

    def check_size(self, request: Request) -> None:
        """Refuse a grammar that its reader would read for seconds, in one call of others' code.

        Raises: LimitError for one past `_MOST_AFTER_BRACES` or `_MOST_LITERALS`.
        """
        spec = request.spec
        if request.kind != "grammar" or spec.strip() in library():
            return
        # PERF: patterns that look for `{m,n}` take the cube of what follows a brace, in one call
        # that cannot be stopped
        if sum(len(run) ** 3 for run in _AFTER_BRACE.findall(spec)) > _MOST_AFTER_BRACES:
            raise LimitError("the grammar has too many blanks and digits in a row behind `{`; leave them out")
        if (request.language or detect(spec)) in ("lark", "llguidance"):
            check_size_of_lark(spec)

    def _grammar(self, request: Request) -> Grammar | Composition:
        spec = request.spec
        name = spec.strip()
        if name in library() and not request.language:
            return load_grammar(name)
        self.check_size(request)
        syntax = request.language or detect(spec)
        if syntax == "schema":
            return _of_object(spec)
        if syntax == "regex":
            raise UnknownNameError(
                f"the grammar {clip(name)} is no grammar in Lark, GBNF or EBNF, and no store or grammar has this name"
                f"{suggestion(name[:60], sorted({*self.stores, *library()}))}"
            )
        if not request.language and syntax in ("lark", "llguidance") and "\n" in spec and DIRECTIVE.search(spec):
            return read_composition(spec, name=_NAME, paths=False)
        if syntax == "llguidance":
            return read_llguidance(spec, name=_NAME)
        if syntax == "gbnf" or syntax == "ebnf":
            return of_host(read_rules(spec, _NAME, syntax, request.root if syntax == "ebnf" else "root"))
        found = parse_grammar(spec, name=_NAME, must_compile=True)
        if found.lexing == "nfa":
            raise GrammarError(
                "the grammar asks for lexing 'nfa', which a server does not have; ask for 'contextual' or 'longest'"
            )
        return found


def guarded(request: Request, work: Callable[[], Any], done: str = "compiled") -> Any:
    """What `work()` returns. done : what the work is, for messages.

    Raises: MaskwrightError for whatever goes wrong.
    """
    try:
        return work()
    except MaskwrightError:
        raise
    except (RecursionError, MemoryError) as error:
        said = f"the {request.kind} is nested too deeply or too large to be {done} ({a_type(error)})"
        raise LimitError(said) from error
    except Exception as error:
        _logger.exception("a %s that a request brought could not be %s", request.kind, done)
        raise MaskwrightError(
            f"the {request.kind} could not be {done}: {type(error).__name__}: {clip(str(error))}; this is an error of "
            "maskwright, please report it"
        ) from error


def check_size_of_lark(spec: str) -> None:
    """Refuse what Lark's loader would read for seconds, in one call that holds up other requests.

    Raises: LimitError for a text past `_MOST_LITERALS`.
    """
    braces, literals = 0, set[str]()  # braces: those of a schema, whose strings are no literals
    for piece in _LARK_PIECE.finditer(spec):
        if braces or piece["json"]:
            braces += bool(piece["json"] or piece["brace"]) - (piece[0] == "}")
        elif piece["literal"]:
            literals.add(piece["literal"])
    if len(literals) > _MOST_LITERALS:
        raise LimitError(
            f"the grammar has {len(literals):,} different string literals; at most {_MOST_LITERALS:,} are taken: write a terminal "
            "with a pattern for what they have in common, or send a choice"
        )


@lru_cache(maxsize=1)
def library() -> frozenset[str]:
    """The names of grammars that come along."""
    return frozenset(known_grammars())


def _choice(spec: str) -> list[str]:
    """The texts of a choice. Raises: GrammarError for what is not a JSON list of strings."""
    try:
        found = read_json(spec)
    except ValueError as error:
        raise GrammarError(f"the choice is not JSON: {error}; expected a list of strings") from None
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        what = a_type(found) if not isinstance(found, list) else "a list with other items than strings"
        raise GrammarError(f"the choice is {what}; expected a JSON list of strings")
    return found


def _of_object(spec: str) -> Grammar | Composition:
    """What a grammar that is a JSON object stands for: a list of grammars, or tools.

    Raises: GrammarError for other objects.
    """
    try:
        values = read_json(spec)
    except ValueError as error:
        raise GrammarError(f"the grammar begins as a JSON object does, and is not JSON: {clip(str(error))}") from None
    if "grammars" in values:
        return read_llguidance(values, name=_NAME)
    if "tools" not in values:
        raise GrammarError(
            "the grammar is a JSON object; send a JSON schema as json, a structural tag as structural_tag, tools as "
            '{"tools": [...], "family": ...}, several grammars as {"grammars": [...]}'
        )
    for key in values:
        if key not in _TOOLS:
            raise GrammarError(f"{clip(key)} is not known beside tools; expected {', '.join(_TOOLS)}")
    if not values.keys() & {"family", "begin", "end"}:
        raise GrammarError(
            "the tools come without 'begin' and 'end', or a 'family', which say how the model writes calls; see mw.read_tools"
        )
    if isinstance(values.get("whitespace"), str) and len(values["whitespace"]) > _LONGEST_PATTERN:
        raise LimitError(f"the pattern of white space has more than {_LONGEST_PATTERN:,} characters")
    return read_tools(values.pop("tools"), **values)


def _refuse_unknown_keywords(schema: Any) -> None:
    """Raises SchemaError at the first keyword that JSON Schema does not have."""
    for place, keyword, _, why, remedy in idle_keywords(places_of(schema, DEFAULT_DRAFT)):
        if keyword.startswith("?"):
            pointer = f"{place.pointer}/{escaped(keyword[1:])}"
            raise SchemaError(f"{pointer}: {why}: {remedy}", pointer)
