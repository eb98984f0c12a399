"""One engine that judges whole texts under JSON schemas: python coverage.py ENGINE, for reports/bench/schema_coverage.py.

A request is a line of JSON: `forms`, the schema's texts, of which the first that the engine takes counts; `tests`, of each a list of
texts. The answer is one line when the schema is compiled or refused, and then one for each test: whether each of its texts is taken.
Each engine has a vocabulary of the 256 bytes and an end of text. This file imports only the standard library and the engine.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != FOLDER]  # its llguidance.py is not the package

BYTES = [bytes([byte]) for byte in range(256)]
END = 256
MEMORY = 12 << 30
"""Bytes of address space of an engine."""

Judge = Callable[[bytes], bool]


def ours() -> Callable[[str], Judge]:
    import maskwright as mw

    vocabulary = mw.Vocabulary(tokens=(*BYTES, b""), special={END: "</s>"}, eos=(END,), name="bytes")

    def compiled(schema: str) -> Judge:
        matcher = mw.build_store(mw.load_schema(schema), vocabulary).matcher()

        def judge(text: bytes) -> bool:
            matcher.reset()
            try:
                matcher.advance_bytes(text)
            except mw.IllegalTokenError:
                return False
            return matcher.is_accepting()

        return judge

    return compiled


def llguidance() -> Callable[[str], Judge]:
    import llguidance

    class Tokenizer:
        eos_token_id, bos_token_id = END, None

        def __init__(self) -> None:
            self.tokens = [*BYTES[:255], b"\xff<byte 255>", b"\xff</s>"]  # a leading 0xFF marks what is special
            self.special_token_ids = [255, END]

        def __call__(self, text: str | bytes) -> list[int]:
            return list(text.encode() if isinstance(text, str) else text)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()), n_vocab=257)

    def compiled(schema: str) -> Judge:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
        first = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if first.is_error():
            raise ValueError(first.get_error())

        def judge(text: bytes) -> bool:
            matcher = first.deep_copy()
            return all(matcher.consume_token(byte) for byte in text) and matcher.is_accepting()

        return judge

    return compiled


def xgrammar(strict: bool = False) -> Callable[[str], Judge]:
    import xgrammar

    info = xgrammar.TokenizerInfo([*BYTES, b""], xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[END])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compiled(schema: str) -> Judge:
        grammar = compiler.compile_json_schema(schema, strict_mode=strict)

        def judge(text: bytes) -> bool:
            matcher = xgrammar.GrammarMatcher(grammar)
            return matcher.accept_string(text) and matcher.accept_token(END)

        return judge

    return compiled


def glrmask() -> Callable[[str], Judge]:
    import glrmask

    vocabulary = glrmask.Vocab.from_id_to_bytes(dict(enumerate(BYTES)))

    def compiled(schema: str) -> Judge:
        constraint = glrmask.Grammar.from_json_schema(schema).compile(vocabulary)

        def judge(text: bytes) -> bool:
            state = constraint.start()
            return state.commit_bytes(text) and state.is_accepting()

        return judge

    return compiled


def outlines(with_index: bool = False) -> Callable[[str], Judge]:
    """The expression that `build_regex_from_schema` writes, read by the package regex.

    `Index` reads the same expression, but takes up to 23 s to compile those of schemas of any values.

    with_index : use `Index` and `Guide`.
    """
    import outlines_core
    import regex
    from outlines_core.json_schema import build_regex_from_schema

    vocabulary = outlines_core.Vocabulary(END, {byte: [number] for number, byte in enumerate(BYTES)})

    def indexed(schema: str) -> Judge:
        index = outlines_core.Index(build_regex_from_schema(schema), vocabulary)

        def judge(text: bytes) -> bool:
            guide = outlines_core.Guide(index)
            try:
                for byte in text:
                    guide.advance(byte, return_tokens=False)
            except ValueError:  # the token is not allowed
                return False
            return bool(guide.is_finished())

        return judge

    def compiled(schema: str) -> Judge:
        expression = regex.compile(build_regex_from_schema(schema))
        return lambda text: expression.fullmatch(text.decode(), timeout=5) is not None

    return indexed if with_index else compiled


ENGINES = {
    "ours": (ours, "maskwright"),
    "llguidance": (llguidance, "llguidance"),
    "xgrammar": (xgrammar, "xgrammar"),
    "xgrammar-strict": (partial(xgrammar, strict=True), "xgrammar"),
    "glrmask": (glrmask, "glrmask"),
    "outlines": (outlines, "outlines-core"),
    "outlines-index": (partial(outlines, with_index=True), "outlines-core"),
}


def answers(compiled: Callable[[str], Judge], request: dict[str, Any], say: Callable[[Any], None]) -> None:
    """Answer one request."""
    reasons: list[str] = []
    judge: Judge | None = None
    for form in request["forms"]:
        try:
            judge = compiled(form)
            break
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}"[:300])
    say({"compiled": judge is not None, "reason": reasons[0] if reasons else ""})
    if judge is None:
        return
    for texts in request["tests"]:
        try:
            say([bool(judge(text.encode())) for text in texts])
        except Exception as error:
            say(f"{type(error).__name__}: {error}"[:300])


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints must not look like an answer
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def say(value: Any) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    make, package = ENGINES[sys.argv[1]]
    compiled = make()
    say(version(package))
    for line in sys.stdin:
        answers(compiled, json.loads(line), say)


if __name__ == "__main__":
    main()
