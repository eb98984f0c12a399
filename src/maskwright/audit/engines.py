"""Engines that write masks, behind one interface: sessions with `reset`, `fill` and `advance`.

A grammar and a vocabulary give the sessions of an engine. Interpreters that have the engine but not
maskwright run this file too (`host`). So it imports only NumPy and the standard library, and an
engine only when that engine is asked for.

A user's own engine is given as `module:function`. It looks like this:

    # grammar_text: the text of a grammar file
    # vocabulary: has name, tokens, special, eos, path and encode (`EngineVocabulary`)
    def function(grammar_text, vocabulary):
        return Session                        # called without arguments for each session

    class Session:
        def reset(self): ...                  # go back to the start of the text
        def fill(self, words): ...            # words: (ceil(V / 32),) uint32, all 0
                                              # set bit i of word w if token 32 w + i may come
        def advance(self, token): ...         # add a token; return whether it was taken
"""

from __future__ import annotations

import codecs
import importlib
import itertools
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

BUILT_IN = "builtin:"
"""Prefix of the name of a grammar that an engine brings along."""


class UnsupportedError(Exception):
    """The engine cannot run this grammar or vocabulary. The message says why."""


class MissingError(Exception):
    """A package is missing. package : what to install."""

    def __init__(self, package: str, why: str) -> None:
        super().__init__(why)
        self.package = package


class EngineVocabulary(NamedTuple):
    """A tokenizer's vocabulary, as an engine gets it.

    name : the vocabulary's name.
    tokens : id -> bytes; b"" for special tokens.
    special : id -> name.
    eos : ids of end-of-text tokens.
    path : the tokenizer's own file, or "".
    encode : bytes -> the tokens with which the tokenizer spells them.
    """

    name: str
    tokens: list[bytes]
    special: dict[int, str]
    eos: list[int]
    path: str = ""
    encode: Callable[[bytes], list[int]] = list

    def end(self, engine: str) -> int:
        """The end-of-text token for an engine that takes only one.

        Raises: UnsupportedError if the vocabulary has none.
        """
        if not self.eos:
            raise UnsupportedError(f"{engine} needs an end-of-text token, and vocabulary {self.name} has none")
        return self.eos[0]


class EngineGrammar(NamedTuple):
    """A grammar, in Lark's language and perhaps in the engine's.

    text : the grammar in Lark's language.
    own : the grammar in the engine's language, or None.
    own_name : name of its file, whose suffix tells the language. After the prefix BUILT_IN: name of
        a grammar that comes with the engine.
    """

    text: str
    own: str | None = None
    own_name: str = ""

    @property
    def built_in(self) -> str | None:
        """The name of a grammar that comes with the engine; None if it is another one."""
        return self.own_name[len(BUILT_IN) :] if self.own_name.startswith(BUILT_IN) else None

    @property
    def source(self) -> str:
        """The text in the engine's language, or else in Lark's."""
        return self.text if self.own is None else self.own

    @property
    def suffix(self) -> str:
        """The language of `source`, as a file's suffix in lower case."""
        return ".lark" if self.own is None else os.path.splitext(self.own_name)[1].lower()


# --- llguidance ---


class _LlguidanceTokenizer:
    """A tokenizer as `TokenizerWrapper` takes it.

    llguidance encodes the bytes that a grammar forces, and its masks depend on the result. With a
    tokenizer that encodes nothing they are wrong.
    """

    bos_token_id = None

    def __init__(self, vocabulary: EngineVocabulary) -> None:
        special = vocabulary.special
        self.eos_token_id = vocabulary.end("llguidance")
        # llguidance marks special tokens by a leading byte 0xFF.
        self.tokens = [b"\xff" + special[i].encode() if i in special else t for i, t in enumerate(vocabulary.tokens)]
        self.special_token_ids = sorted(special)
        self._encode = vocabulary.encode

    def __call__(self, text: Any) -> list[int]:
        return self._encode(text.encode() if isinstance(text, str) else bytes(text))


class _LlguidanceSession:
    def __init__(self, first: Any) -> None:
        self.first = first
        self.words: Any = None
        self.reset()

    def reset(self) -> None:
        # deep_copy shares the lexer's automaton, so a new text does not start cold.
        self.matcher = self.first.deep_copy()

    def fill(self, words: Any) -> None:
        self.matcher.unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)
        if self.matcher.is_error():
            raise RuntimeError(self.matcher.get_error())

    def advance(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token))


def llguidance(grammar: EngineGrammar, vocabulary: EngineVocabulary) -> Callable[[], Any]:
    """A function that makes sessions of `LLMatcher`, with its default limits.

    It reads a dialect of Lark, JSON Schemas (.json) and regular expressions (.regex).

    Raises: MissingError if llguidance is missing; UnsupportedError if it refuses the grammar or
        vocabulary.
    """
    package = _package("llguidance")
    tokenizer = package.LLTokenizer(
        package.TokenizerWrapper(_LlguidanceTokenizer(vocabulary)), n_vocab=len(vocabulary.tokens)
    )
    matcher = package.LLMatcher
    read = {".json": matcher.grammar_from_json_schema, ".regex": matcher.grammar_from_regex}
    first = matcher(tokenizer, read.get(grammar.suffix, matcher.grammar_from_lark)(grammar.source), log_level=0)
    if first.is_error():
        raise UnsupportedError(first.get_error())
    return partial(_LlguidanceSession, first)


# --- xgrammar ---


class _XgrammarSession:
    def __init__(self, package: Any, compiled: Any) -> None:
        self.matcher = package.GrammarMatcher(compiled)
        self.torch = _package("torch")
        self.words: Any = None

    def reset(self) -> None:
        self.matcher.reset()

    def fill(self, words: Any) -> None:
        if words is not self.words:
            self.words, self.bitmask = words, self.torch.from_numpy(words.view(np.int32)).reshape(1, -1)
        # Where every token is allowed it leaves the bitmask alone, and returns False.
        if self.matcher.fill_next_token_bitmask(self.bitmask, 0) is False:
            words[:] = 0xFFFFFFFF

    def advance(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


def xgrammar(grammar: EngineGrammar, vocabulary: EngineVocabulary) -> Callable[[], Any]:
    """A function that makes sessions of `GrammarMatcher`.

    It reads EBNF, GBNF, a dialect of Lark (.lark), JSON Schemas (.json), regular expressions
    (.regex), and builtin:json.

    Raises: MissingError if xgrammar or torch is missing; UnsupportedError if the vocabulary has no
        end of text, if this version does not read the language, or if there is no such built-in
        grammar.
    """
    package = _package("xgrammar")
    _package("torch", "xgrammar torch")
    vocabulary.end("xgrammar")
    info = package.TokenizerInfo(
        vocabulary.tokens,
        package.VocabType.RAW,
        vocab_size=len(vocabulary.tokens),
        stop_token_ids=vocabulary.eos,
    )
    compiler = package.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    if grammar.built_in is not None:
        if grammar.built_in != "json":
            raise UnsupportedError(f"xgrammar has no grammar {grammar.own_name}: there is {BUILT_IN}json")
        compiled = compiler.compile_builtin_json_grammar()
    else:
        names = {".lark": "compile_lark", ".json": "compile_json_schema", ".regex": "compile_regex"}
        name = names.get(grammar.suffix, "compile_grammar")
        if not hasattr(compiler, name):
            raise UnsupportedError(f"this version of xgrammar does not read {grammar.suffix} files")
        compiled = getattr(compiler, name)(grammar.source)
    return partial(_XgrammarSession, package, compiled)


# --- outlines-core ---


class _OutlinesSession:
    def __init__(self, package: Any, index: Any) -> None:
        self.package, self.index = package, index
        self.reset()

    def reset(self) -> None:
        self.guide = self.package.Guide(self.index)

    def fill(self, words: Any) -> None:
        self.guide.write_mask_into(words.ctypes.data, words.size, words.itemsize)

    def advance(self, token: int) -> bool:
        try:
            self.guide.advance(token, return_tokens=False)
        except ValueError:  # it raises this if a token is not allowed
            return False
        return True


def outlines(grammar: EngineGrammar, vocabulary: EngineVocabulary) -> Callable[[], Any]:
    """A function that makes sessions of outlines-core's `Guide`.

    It reads regular expressions and JSON Schemas (.json).

    Raises: MissingError if outlines-core is missing; UnsupportedError if the vocabulary has no end
        of text, or if the grammar is in Lark's language.
    """
    package = _package("outlines_core", "outlines-core")
    if grammar.suffix == ".lark":
        raise UnsupportedError("outlines reads regular expressions and JSON Schemas (.json), not Lark's language")
    end = vocabulary.end("outlines")
    ids: dict[bytes, list[int]] = {}
    for token, text in enumerate(vocabulary.tokens):
        if text:
            ids.setdefault(text, []).append(token)
    # The line feed at the end of a file is an editor's, not part of the expression.
    is_schema = grammar.suffix == ".json"
    source = grammar.source
    expression = package.json_schema.build_regex_from_schema(source) if is_schema else source.rstrip("\r\n")
    return partial(_OutlinesSession, package, package.Index(expression, package.Vocabulary(end, ids)))


# --- interegular ---


class _InteregularSession:
    """Masks of interegular's automaton of characters; a token may end inside a character."""

    def __init__(self, other: Any, automaton: Any, vocabulary: EngineVocabulary) -> None:
        self.other, self.automaton, self.vocabulary = other, automaton, vocabulary
        self.live = {state for state in automaton.states if automaton.islive(state)}
        self.masks: dict[tuple[Any, bytes], Any] = {}
        self.reset()

    def reset(self) -> None:
        self.place: tuple[Any, bytes] = self.automaton.initial, b""

    def step(self, state: Any, character: Any) -> Any:
        alphabet = self.automaton.alphabet
        found = self.automaton.map.get(state, {}).get(alphabet[character if character in alphabet else self.other])
        return found if found in self.live else None

    def goes_on(self, state: Any, begun: bytes) -> bool:
        """Whether a character that begins with these bytes may come."""
        named = (each for each in self.automaton.alphabet if isinstance(each, str) and each.encode().startswith(begun))
        if any(self.step(state, each) is not None for each in named):
            return True
        if self.step(state, self.other) is None:
            return False
        missing = (2 if begun[0] < 0xE0 else 3 if begun[0] < 0xF0 else 4) - len(begun)
        rest = itertools.product(range(0x80, 0xC0), repeat=missing)
        ends = ((begun + bytes(each)).decode("utf-8", "ignore") for each in rest)
        return any(each not in self.automaton.alphabet for each in ends if len(each) == 1)

    def after(self, token: int) -> tuple[Any, bytes] | None:
        state, begun = self.place
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = decoder.decode(begun + self.vocabulary.tokens[token])
        except UnicodeDecodeError:
            return None
        for character in text:
            state = self.step(state, character)
            if state is None:
                return None
        begun = decoder.getstate()[0]
        return (state, begun) if not begun or self.goes_on(state, begun) else None

    def fill(self, words: Any) -> None:
        if self.place not in self.masks:
            allowed = np.zeros(32 * len(words), dtype=np.bool_)
            for token, text in enumerate(self.vocabulary.tokens):
                allowed[token] = bool(text) and self.after(token) is not None
            allowed[self.vocabulary.eos] = self.place[0] in self.automaton.finals and not self.place[1]
            self.masks[self.place] = _words_of(allowed)
        words[:] = self.masks[self.place]

    def advance(self, token: int) -> bool:
        found = self.after(token)
        self.place = found or self.place
        return found is not None


def interegular(grammar: EngineGrammar, vocabulary: EngineVocabulary) -> Callable[[], Any]:
    """A function that makes sessions of interegular's automaton, on which the first Outlines stood.

    It reads regular expressions.

    Raises: MissingError if interegular is missing; UnsupportedError if the grammar is in another
        language.
    """
    package = _package("interegular")
    if grammar.suffix in (".lark", ".json"):
        raise UnsupportedError("interegular reads regular expressions, neither Lark's language nor JSON Schemas")
    automaton = package.parse_pattern(grammar.source.rstrip("\r\n")).to_fsm().reduce()
    other = importlib.import_module("interegular.fsm").anything_else
    return partial(_InteregularSession, other, automaton, vocabulary)


# --- SynCode ---


class _SyncodeSession:
    """SynCode has no `advance`: each mask reads the whole text so far.

    When its parser fails it masks nothing and reports nothing.
    """

    def __init__(self, torch: Any, constrainer: Any, vocabulary: EngineVocabulary) -> None:
        self.torch, self.constrainer, self.vocabulary = torch, constrainer, vocabulary
        self.ids = torch.zeros((1, 1 << 16), dtype=torch.long)
        self.scores = torch.zeros((1, len(vocabulary.tokens)))
        self.reset()

    def reset(self) -> None:
        self.constrainer.reset()
        # The tokens of the text are appended to one prompt token. SynCode takes what it is first
        # asked about as the prompt, which it does not read.
        self.length = 1
        self.constrainer.mask_scores(self.ids[:, :1], self.scores)

    def fill(self, words: Any) -> None:
        self.scores.zero_()
        masked = self.constrainer.mask_scores(self.ids[:, : self.length], self.scores)
        allowed = np.zeros(32 * len(words), dtype=np.bool_)
        allowed[: self.scores.shape[1]] = self.torch.isfinite(masked[0]).numpy()
        words[:] = _words_of(allowed)

    def advance(self, token: int) -> bool:
        if self.length == self.ids.shape[1]:
            self.ids = self.torch.cat([self.ids, self.torch.zeros_like(self.ids)], dim=1)
        self.ids[0, self.length] = token
        self.length += 1
        return True


def syncode(grammar: EngineGrammar, vocabulary: EngineVocabulary) -> Callable[[], Any]:
    """A function that makes sessions of SynCode's `GrammarConstrainer`.

    It reads Lark, and builtin:NAME for its own grammars (python, json, go, ...).

    Raises: MissingError if syncode, torch or transformers is missing; UnsupportedError if the
        vocabulary has no file or no end of text, or if SynCode has no such grammar.
    """
    _package("syncode")
    torch, transformers = _package("torch"), _package("transformers")
    if not vocabulary.path:
        raise UnsupportedError(f"SynCode needs the tokenizer's file, and vocabulary {vocabulary.name} has none")
    if vocabulary.path.endswith(".json"):
        end = vocabulary.special[vocabulary.end("SynCode")]
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=vocabulary.path, eos_token=end)
    else:
        tokenizer = transformers.LlamaTokenizer(vocab_file=vocabulary.path, legacy=False)
    grammars = importlib.import_module("syncode.parsers.grammars")
    processors = importlib.import_module("syncode.grammar_mask.logits_processor")
    source = grammars.Grammar(grammar.source if grammar.built_in is None else grammar.built_in)
    if grammar.built_in is not None and source.ebnf == grammar.built_in:
        raise UnsupportedError(f"SynCode has no grammar {grammar.own_name}")
    processor = processors.SyncodeLogitsProcessor(source, tokenizer, use_cache=True, parse_output_only=True)
    return partial(_SyncodeSession, torch, processor.grammar_engine, vocabulary)


# --- all of them ---


ENGINES: dict[str, tuple[Callable[[EngineGrammar, EngineVocabulary], Callable[[], Any]], str]] = {
    "interegular": (interegular, "interegular"),
    "llguidance": (llguidance, "llguidance"),
    "outlines": (outlines, "outlines-core"),
    "syncode": (syncode, "syncode"),
    "xgrammar": (xgrammar, "xgrammar"),
}
"""Name -> function that makes sessions, and the distribution to install."""
_WITH_GRAMMARS = ("syncode", "xgrammar")
"""Engines that bring grammars along."""


def make_sessions(engine: str, grammar: EngineGrammar, vocabulary: EngineVocabulary) -> Callable[[], Any]:
    """A function that makes the sessions of an engine.

    engine : a key of ENGINES, or `module:function`.

    Raises: UnsupportedError if the engine cannot run the grammar or vocabulary, or if there is no
        such function; MissingError if its package is missing; whatever the engine raises.
    """
    if engine in ENGINES:
        if grammar.built_in is not None and engine not in _WITH_GRAMMARS:
            raise UnsupportedError(f"{engine} comes with no grammars, so there is no {grammar.own_name}")
        return ENGINES[engine][0](grammar, vocabulary)
    module_name, _, path = engine.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise UnsupportedError(f"there is no module {error.name} here or on the path of {sys.executable}") from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise UnsupportedError(f"{module_name} has no {path}")
        found = getattr(found, name)
    if not callable(found):
        raise UnsupportedError(f"{engine} is of type {type(found).__name__}, which cannot be called")
    sessions = found(grammar.source, vocabulary)
    if not callable(sessions):
        raise UnsupportedError(
            f"{engine} returned an object of type {type(sessions).__name__}; expected a function that makes a session"
        )
    return sessions  # type: ignore[no-any-return]


def version_of(engine: str) -> str:
    """The version of a known engine's distribution, or ""."""
    try:
        return metadata.version(ENGINES[engine][1]) if engine in ENGINES else ""
    except metadata.PackageNotFoundError:
        return ""


def _words_of(allowed: Any) -> Any:
    """The words of a mask. allowed : a bool for each bit."""
    return np.packbits(allowed, bitorder="little").view(np.uint32)


def _package(name: str, install: str = "") -> Any:
    """Import a package.

    Raises: MissingError with the distribution, and with what that lacks in its turn.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        lacking = "" if error.name == name else f" {error.name}"
        raise MissingError((install or name) + lacking, str(error)) from None
