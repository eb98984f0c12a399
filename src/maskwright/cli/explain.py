"""`maskwright explain`: why a token is refused, or where a text goes wrong."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import MAX_TEXT, read_file_bytes, read_stream
from maskwright.cli.command import command
from maskwright.cli.common import check_writable, load_any_store, show, standard_input
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, is_composition, is_constraint

if TYPE_CHECKING:
    from maskwright.decoding.explain.explanation import Explanation

_EPILOG = """Examples: maskwright explain lark:python --text script.py

printf 'x = (1, 2' | maskwright explain lark:python --text - --token "']'"

Exit codes: 0 the text is the beginning of a legal one, and the token may come; 1 otherwise; 2 usage or bad input; 130 interrupted."""

MOST_DIGITS = 1_000
"""Most digits of a token's id; a longer number is no id, and too long for a message."""

_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
"""Byte order mark -> encoding; UTF-32 comes before the UTF-16 mark that it begins with."""


@command(epilog=_EPILOG)
def explain(
    store: str,
    *,
    text: str | None = None,
    token: str | None = None,
    tokenizer: str | None = None,
    options: GrammarOptions = DEFAULTS,
    refresh: bool = False,
    json_file: Path | None = None,
) -> None:
    """Why a token may not come after a text, or where a text goes wrong, and what could stand there.

    One of --text and --token is needed.

    text FILE : The text's file; - for standard input. With --token, by default no text.
    token T : A token after the text: its id, or its text in quotes: --token "' def'".
    """
    check_writable(json_file, inputs=(store, "/dev/stdin" if text == "-" else text, tokenizer))
    if text is None and token is None:
        raise MaskwrightError("nothing to explain: give a text (--text FILE, or - for standard input) or a token")
    data = b"" if text is None else _read(text)
    wanted = None if token is None else _token(token)
    if tokenizer is None and is_constraint(store, options) and not is_composition(store, options):
        constraint = options.load_constraint(store)
        if isinstance(wanted, int):
            raise MaskwrightError(
                f"token {wanted} is an id, but no tokenizer is given: name it (--tokenizer), or write the token's text in quotes"
            )
        found = _without_store(constraint, data, wanted)
    else:
        from maskwright.decoding.engines import explain_after

        compiled = load_any_store(store, tokenizer, options, refresh)
        if not compiled.engine:
            raise MaskwrightError(
                f"{store} is a store of lexing 'nfa', whose several hypotheses are not explained: export one with --lexing longest"
            )
        size = compiled.vocabulary.size
        if isinstance(wanted, int) and wanted >= size:
            raise MaskwrightError(f"token {wanted} is out of range: the vocabulary has the ids 0 to {size - 1}")
        found = explain_after(compiled, data, wanted)
    show(found, json_file, found.is_allowed)


def _without_store(constraint: Any, data: bytes, wanted: bytes | None) -> Explanation:
    """The explanation for a grammar, a schema or a pattern without a vocabulary."""
    from maskwright.decoding.explain import explain_text, explain_token
    from maskwright.decoding.explain.explain import explain_schema

    if constraint.kind == "grammar":
        return explain_text(constraint, data) if wanted is None else explain_token(constraint, data, wanted)
    texts = getattr(constraint, "texts", None) or constraint.automaton
    return explain_schema(texts, constraint.name, data, wanted)


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
