"""`audit`: compare an engine's masks with exact masks on a corpus.

In: a store, paths, an engine's name. Out: an `AuditReport`.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

from maskwright.analysis.errors import GrammarError, IllegalTokenError, LimitError, MaskwrightError, VocabularyError
from maskwright.analysis.files import absolute
from maskwright.analysis.grammar.lark_files import read_file
from maskwright.analysis.schema.text_patterns import load_regex
from maskwright.audit.compare import OUTCOMES, Comparison, EncodedText, Found, Progress, Seen, cause
from maskwright.audit.engines import BUILT_IN, EngineGrammar
from maskwright.audit.remote import CRASH, TIMEOUT, EngineFailed, RemoteEngine, check_engine
from maskwright.audit.report import INCONSISTENT, ORDER, UNDER, AuditReport, Difference, spread
from maskwright.audit.shrink import shrink
from maskwright.maskstore.vocabulary.encoders import Encoder, encoder_of
from maskwright.maskstore.vocabulary.tokenizer_files import found_file
from maskwright.stores.store import Store
from maskwright.validation.corpus import Corpus, CorpusError, Text, find_corpus, suffixes_of
from maskwright.validation.replay import place_of, replay


def audit(
    store: Store,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    engine: str,
    *,
    grammar_text: str,
    tokenizer: Any = None,
    engine_grammar: str | os.PathLike[str] | EngineGrammar | None = None,
    python: str | None = None,
    timeout: float = 60.0,
    suffixes: Sequence[str] = (),
    field: str = "text",
    limit: int | None = None,
    max_positions: int = 10_000,
    seed: int = 0,
    examples: int = 10,
    shrink_seconds: float = 5.0,
    progress: Progress | None = None,
) -> AuditReport:
    """Compare an engine's masks with a store's on the texts of a corpus.

    store : has the exact masks; of lexing "longest" or "contextual".
    paths, suffixes, field, limit : the corpus, as `validate` takes it.
    engine : "llguidance", "interegular", "outlines", "syncode", "xgrammar", or `module:function`
        (`engines`).
    grammar_text : the grammar as Lark reads it, for engines that read it too.
    tokenizer : encodes the texts; as for `load_encoder`. By default the built-in tokenizer of the
        store's vocabulary.
    engine_grammar : a file with the grammar in the engine's own language, or builtin:NAME; or what
        `read_pattern` returns.
    python : the interpreter that has the engine; by default this one.
    timeout : seconds that the engine has for a mask. It has ten times as many for the grammar.
    max_positions : masks compared. If the corpus has more positions, they are drawn at random.
    seed : of this draw.
    examples : differences of each kind that are reported, each with a shortest text.
    shrink_seconds : most seconds for shortening one text.
    progress : called with (what, done, total).

    Returns an `AuditReport`.
    Raises: UnknownNameError if the engine is not known; MissingExtraError if its package is
        missing; CorpusError if there are no texts; VocabularyError if the tokenizer is not the
        store's, or if none is given and the store's vocabulary is not built in; GrammarError if the
        store's lexing is "nfa"; MaskwrightError if a number is out of range, or if the engine
        refuses the grammar or the vocabulary.
    Cost: the engine's, and less than 0.5 ms a mask for the pipe and the comparison.
    """
    check_engine(engine)
    for name, value in (("max_positions", max_positions), ("limit", limit)):
        if value is not None and value < 1:
            raise MaskwrightError(f"{name} is {value}; expected at least 1")
    if examples < 0 or timeout <= 0:
        raise MaskwrightError(
            f"examples is {examples} and timeout is {timeout}; expected examples of at least 0 and a timeout of more than 0"
        )
    if store.grammar.lexing == "nfa":
        raise GrammarError(
            "a store of lexing 'nfa' has no exact masks to audit against; load the grammar with lexing='longest'"
        )
    begin = time.perf_counter()
    given = [str(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    name = store.vocabulary.name
    source = tokenizer or (name if os.path.exists(name) else None)
    encoder, source = encoder_of(store.vocabulary, source), source or name
    path = absolute(found_file(source)) if isinstance(source, str | os.PathLike) else ""
    corpus = find_corpus(given, tuple(suffixes) or suffixes_of(store.grammar.name), field)
    texts, unreadable = _encoded(corpus, limit, encoder, progress)
    if not texts and not unreadable:
        raise CorpusError(f"there is no text in {', '.join(given)}")
    grammar = _engine_grammar(grammar_text, engine_grammar)
    encode = partial(_encode, encoder)
    with RemoteEngine(engine, grammar, store.vocabulary, encode, path=path, python=python, timeout=timeout) as remote:
        facts = {"name": engine, "grammar": store.grammar.name if grammar.own is None else grammar.own_name}
        facts |= remote.facts
        run = Comparison(store, remote, texts, progress)
        run.warm_up()
        run.read(max_positions, seed)
        gave_up = remote.gave_up
        differences, unlisted = differences_of(run, encoder, examples, shrink_seconds)
    return AuditReport(
        engine=facts,
        store={"grammar": store.grammar.name, "vocabulary": name, "lexing": store.grammar.lexing},
        settings={
            "paths": given,
            "max_positions": max_positions,
            "seed": seed,
            "examples": examples,
            "timeout": timeout,
        },
        texts={outcome: run.texts_by_outcome[outcome] for outcome in OUTCOMES if run.texts_by_outcome[outcome]},
        unreadable=tuple(unreadable),
        counts=run.counts,
        microseconds={whose: spread(times) for whose, times in run.nanoseconds.items()},
        differences=differences,
        unlisted=unlisted,
        gave_up=gave_up,
        seconds=time.perf_counter() - begin,
    )


def _encoded(
    corpus: Corpus, limit: int | None, encoder: Encoder, progress: Progress | None
) -> tuple[list[EncodedText], list[tuple[str, str]]]:
    """The texts of a corpus with their tokens, and (name, reason) of the unusable ones."""
    texts: list[EncodedText] = []
    unreadable: list[tuple[str, str]] = []
    done = 0
    for text in islice(corpus, limit):
        done += text.weight
        if progress is not None:
            progress("bytes encoded", min(done, corpus.n_bytes), corpus.n_bytes)
        try:
            if isinstance(text, Text):
                texts.append(EncodedText(text.name, text.text, encoder.exact_tokens(text.text).tokens))
            else:
                unreadable.append((text.name, text.reason))
        except VocabularyError as error:
            unreadable.append((text.name, str(error)))
    return texts, unreadable


def read_pattern(source: str) -> tuple[str, EngineGrammar]:
    """A pattern, or a file of one, as a grammar in Lark and as an engine of patterns reads it."""
    pattern = (read_file(source) if os.path.isfile(source) else source).removesuffix("\n").removesuffix("\r")
    load_regex(pattern)  # errors are about the pattern, not about what is made of it
    literal = re.sub(r"(?s)\\.|/|\n", lambda one: {"/": "\\/", "\n": "\\n"}.get(one[0], one[0]), pattern)
    text = f"start: PATTERN\nPATTERN: /{literal}/\n"
    return text, EngineGrammar(text, pattern, "pattern.regex")


def _engine_grammar(text: str, own: str | os.PathLike[str] | EngineGrammar | None) -> EngineGrammar:
    """The grammar for the engine.

    own : as `audit` takes it; None if there is none in the engine's language.
    """
    if own is None or isinstance(own, EngineGrammar):
        return own or EngineGrammar(text)
    name = os.fspath(own)
    return EngineGrammar(text, "" if name.startswith(BUILT_IN) else read_file(name), name)


def _encode(encoder: Encoder, data: bytes) -> list[int]:
    """The tokens that spell some bytes; [] if no tokens do."""
    try:
        try:
            return encoder.exact_tokens(data.decode()).tokens
        except UnicodeDecodeError:
            return encoder.longest_tokens(data)
    except VocabularyError:
        return []


_CRASH_TESTS = 30
"""Texts that are tried to shorten one that kills the engine. Each costs a start."""


def differences_of(
    run: Comparison, encoder: Encoder, examples: int, seconds: float
) -> tuple[tuple[Difference, ...], dict[str, int]]:
    """The differences in order, at most `examples` of each kind, each with a shortest text.

    run : after it has read its texts.
    encoder : spells the texts that are tried.
    seconds : for shortening one text.

    Returns the differences, and kind -> how many more were only counted.
    """
    # One cause often shows in many parts of a grammar. So different terminals come first, then
    # the same ones after other terminals.
    alike: Counter[tuple[str, str]] = Counter()
    by_kind: dict[str, list[tuple[int, Seen]]] = defaultdict(list)
    for one in sorted(run.seen.values(), key=lambda one: (-one.positions, one.place)):
        by_kind[one.kind].append((alike[one.kind, one.example.sequence], one))
        alike[one.kind, one.example.sequence] += 1
    chosen: list[Seen] = []
    unlisted: dict[str, int] = {}
    for kind in sorted(by_kind, key=ORDER.index):
        ordered = [one for _, one in sorted(by_kind[kind], key=lambda turn: turn[0])]
        chosen += ordered[:examples]
        if len(ordered) > examples:
            unlisted[kind] = len(ordered) - examples
    found: list[Difference] = []
    for number, one in enumerate(chosen):
        found.append(_difference(run, encoder, one, [difference.prefix for difference in found], seconds))
        if run.progress is not None:
            run.progress("examples shortened", number + 1, len(chosen))
    return tuple(found), unlisted


def _difference(run: Comparison, encoder: Encoder, seen: Seen, others: Sequence[bytes], seconds: float) -> Difference:
    """The finding for one difference. others : texts to try first when shortening."""
    example, (_, at, number) = seen.example, seen.place
    text = run.texts[number]
    tokens, token = text.tokens[:at], example.token
    prefix = b"".join(run.vocabulary.tokens[each] for each in tokens)
    line, column = place_of(text.text, len(prefix))

    def shows(data: bytes) -> bool:
        return _shown_token(run, encoder, example, data) is not None

    # One more time-out would cost as much as the first.
    is_shortest = example.kind != TIMEOUT and shows(prefix)
    if is_shortest:
        tests = {"tests": _CRASH_TESTS} if example.kind == CRASH else {}
        prefix = shrink(prefix, shows, others=others, seconds=seconds, **tests)
        shown = _shown_token(run, encoder, example, prefix) if example.sequence else None
        token = token if shown is None else shown
        tokens = encoder.longest_tokens(prefix)
    why = ""
    if token >= 0 and example.kind == UNDER:
        run.matcher.reset()
        if replay(run.matcher, tokens) == len(tokens):
            why = str(run.matcher.explain(token)).splitlines()[0]
    return Difference(
        kind=seen.kind,
        before=example.before,
        sequence=example.sequence,
        positions=seen.positions,
        tokens=seen.tokens,
        true_refusals=seen.true_refusals,
        prefix=prefix,
        token=None if token < 0 else (token, run.vocabulary.tokens[token]),
        is_shortest=is_shortest,
        place=f"{text.name}:{line}:{column}",
        message=example.message,
        why=why,
    )


def _shown_token(run: Comparison, encoder: Encoder, example: Found, prefix: bytes) -> int | None:
    """A shortest token with the same difference after a text, -1 for none.

    Returns None if the difference does not show there.
    """
    try:
        tokens = encoder.longest_tokens(prefix)
        if not run.stand_at(tokens):
            return None
        run.fill_ours()
        theirs, _ = run.fill_theirs()
        if example.kind == INCONSISTENT:
            is_allowed = theirs[example.token] and run.ours[example.token]
            return -1 if is_allowed and run.remote.advance([example.token]) == 0 else None
    except (VocabularyError, LimitError, IllegalTokenError):
        return None
    except EngineFailed as error:
        return -1 if example.kind == error.kind and example.message == cause(error) else None
    return next((found.token for found in run.differences(theirs) if found.key == example.key), None)
