"""`maskwright explain`: why a token is refused, or where a text goes wrong."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import MAX_TEXT, read_file_bytes, read_stream
from maskwright.cli.common import (
    GrammarOrStoreArgument,
    JsonOption,
    RefreshOption,
    TokenizerOption,
    app,
    check_writable,
    clean_errors,
    load_any_store,
    load_inputs,
    load_or_build_store,
    standard_input,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, is_composition, is_constraint, takes_options

if TYPE_CHECKING:
    from maskwright.decoding.explain.explanation import Explanation
    from maskwright.stores.sources import Constraint

_EPILOG = """Examples: maskwright explain lark:python --text script.py

printf 'x = (1, 2' | maskwright explain lark:python --text - --token "']'"

Exit codes: 0 the text is the beginning of a legal one, and the token may come; 1 otherwise; 2 usage or bad input; 130 interrupted."""

MOST_DIGITS = 1_000
"""Most digits of a token's id; a longer number is no id, and too long for a message."""

_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
"""Byte order mark -> encoding; UTF-32 comes before the UTF-16 mark that it begins with."""


@app.command(epilog=_EPILOG)
@takes_options()
def explain(
    store: GrammarOrStoreArgument,
    text: Annotated[
        str | None,
        typer.Option(
            "--text", metavar="FILE", help="The text's file; - for standard input. With --token, by default no text."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="T", help="""A token after the text: its id, or its text in quotes: --token "' def'"."""
        ),
    ] = None,
    tokenizer: TokenizerOption = None,
    options: GrammarOptions = DEFAULTS,
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """Why a token may not come after a text, or where a text goes wrong, and what could stand there.

    One of --text and --token is needed.
    """
    with clean_errors():
        check_writable(json_file, inputs=(store, "/dev/stdin" if text == "-" else text, tokenizer))
        if text is None and token is None:
            raise MaskwrightError("nothing to explain: give a text (--text FILE, or - for standard input) or a token")
        data = b"" if text is None else _read(text)
        wanted = None if token is None else _token(token)
        constraint, compiled = (
            (None, load_any_store(store, tokenizer, options, refresh))
            if is_composition(store, options)
            else _load(store, tokenizer, options, refresh)
        )
        if isinstance(wanted, int):
            if compiled is None:
                raise MaskwrightError(
                    f"token {wanted} is an id, but no tokenizer is given: name it (--tokenizer), or write the token's text in quotes"
                )
            if wanted >= compiled.vocabulary.size:
                raise MaskwrightError(
                    f"token {wanted} is out of range: the vocabulary has the ids 0 to {compiled.vocabulary.size - 1}"
                )
        if compiled is None:
            assert not isinstance(wanted, int)
            found = _without_store(constraint, data, wanted)
        else:
            from maskwright.decoding.engines import explain_after

            found = explain_after(compiled, data, wanted)
        if write_json(json_file, found.to_dict()):
            Console(soft_wrap=True).print(found, highlight=False)
    if not found.is_allowed:
        raise typer.Exit(1)


def _without_store(constraint: Any, data: bytes, wanted: bytes | None) -> Explanation:
    """The explanation for a grammar, a schema or a pattern without a vocabulary."""
    from maskwright.decoding.explain import explain_text, explain_token
    from maskwright.decoding.explain.schema_explain import explain_schema_text, explain_schema_token

    if constraint.kind == "grammar":
        return explain_text(constraint, data) if wanted is None else explain_token(constraint, data, wanted)
    texts = getattr(constraint, "texts", None) or constraint.automaton
    if wanted is None:
        return explain_schema_text(texts, constraint.name, data)
    return explain_schema_token(texts, constraint.name, data, wanted)


def _load(source: str, tokenizer: str | None, options: GrammarOptions, refresh: bool) -> tuple[Constraint | None, Any]:
    """The store; without a store file and a tokenizer None, and the grammar or schema before it."""
    from_text = is_constraint(source, options)
    if from_text and tokenizer is None:
        return load_inputs(source, None, options)[0], None
    compiled = load_or_build_store(source, tokenizer if from_text else None, options, refresh=refresh)
    if not hasattr(compiled, "engine"):
        raise MaskwrightError(
            f"{source} is a store of lexing 'nfa', whose several hypotheses are not explained: export one with --lexing longest"
        )
    return None, compiled


def _read(source: str) -> bytes:
    """The bytes of a text from a file or, for `-`, from standard input; they are valid UTF-8."""
    try:
        if source == "-":
            data = read_stream(standard_input(), "standard input", MAX_TEXT, "a text")
        else:
            data = read_file_bytes(source, MAX_TEXT, "a text")
    except OSError as error:
        how = "--text takes a file; --text - reads standard input"
        raise MaskwrightError(f"the file {source!r} cannot be read: {error.strerror}; {how}") from error
    shown = "standard input" if source == "-" else source
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            raise MaskwrightError(f"the text {shown} is in {name} by its byte order mark; expected UTF-8: convert it")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = data[error.start : error.start + 1]
        raise MaskwrightError(
            f"the text {shown} is not in UTF-8: byte {error.start} (line {line}) is {found!r}, {error.reason}; convert it "
            "(iconv -f ENCODING -t UTF-8)"
        ) from error
    return data


def _token(shown: str) -> int | bytes:
    """The value of --token: an id, or the non-empty bytes of a Python string or bytes literal."""
    if shown.isdecimal() and shown.isascii() and len(shown) <= MOST_DIGITS:
        return int(shown)
    try:
        found = ast.literal_eval(shown)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = None
    if isinstance(found, str):
        try:
            found = found.encode("utf-8")
        except UnicodeEncodeError:
            found = None
    if not isinstance(found, bytes) or not found:
        raise MaskwrightError(
            f"the token {shown[:40]!r} is neither an id nor a text in quotes; expected for instance 421, \"' def'\" or \"b'\\\\xc3'\""
        )
    return found
