"""`audit_schema`: which keywords of a JSON schema does another engine ignore or get wrong?

In: a schema, an engine's name. Out: a `SchemaAuditReport`.

Instances are drawn under our own masks of the schema, byte by byte, and under those of a narrower
one in which all named members are required. Both they and what the caller gives are changed in one
place, again and again (`mutations`). The package jsonschema says which of the values are instances,
and which keywords the others break. The engine reads their texts.

An engine may ask for an order of members or for white space. So an instance counts as refused only
if it is refused in all spellings (`_spellings`), and a value is accepted if it is in one.

A difference counts only if our masks are on jsonschema's side. What both engines say against
jsonschema is counted as disputed.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, product
from typing import Any, TypeAlias

import numpy as np

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, MissingExtraError, SchemaError
from maskwright.analysis.schema.documents import escaped
from maskwright.analysis.schema.load import JsonSchema, load_schema
from maskwright.audit.engines import EngineGrammar
from maskwright.audit.mutations import Path, Words, exactly, keywords_of, mutated, pieces, smaller, spell, words_of
from maskwright.audit.remote import EngineFailed, RemoteEngine, check_engine
from maskwright.audit.report import ACCEPTS, REFUSES, SchemaAuditReport, SchemaDifference
from maskwright.maskstore.table.build import byte_vocabulary
from maskwright.maskstore.vocabulary.masks import tokens_of
from maskwright.stores.schema_store import SchemaStore, build_schema_store
from maskwright.validation.instances import NOT_INSTALLED, InstanceJudge, Violation, value_of
from maskwright.validation.replay import is_text

Progress = Callable[[str, int, int], None]

VALUES = 2_000
"""Values that are tried unless the caller says otherwise."""
_DRAWN = 60
"""Instances that are drawn under the masks, and as many under the narrower schema."""
_LONGEST = 150
"""Bytes that are drawn before a text is closed in the shortest way."""
_MOST_TEXT = 4_000
"""Characters of a value's text, above which it is not tried."""
_POOL = 300
"""Instances that mutations begin with, at most; a new one takes the place of an old one."""
_SHRINKS = 400
"""Smaller values that are tried for each example."""


def audit_schema(
    schema: Any,
    engine: str,
    *,
    python: str | None = None,
    timeout: float = 60.0,
    values: int = VALUES,
    seed: int = 0,
    examples: int = 10,
    texts: Sequence[str] = (),
    progress: Progress | None = None,
) -> SchemaAuditReport:
    """Find what an engine accepts that is no instance of a schema, or refuses that is one.

    schema : as for `load_schema`, or what it returns. What no mask can say exactly is left out for
        drawing, and judged by jsonschema all the same.
    engine : "llguidance", "xgrammar", "outlines", or `module:function` (`engines`), which gets the
        schema as JSON text.
    python : the interpreter that has the engine; by default this one.
    timeout : seconds that the engine has for a call, and ten times as many for the schema.
    values : values that are tried.
    seed : of all random choices.
    examples : differences of each kind whose example is made small and listed.
    texts : JSON texts to begin with, besides those that are drawn.
    progress : called with (what, done, total).

    Raises: SchemaError for a schema that cannot be read at all; UnknownNameError if the engine is
        not known; MissingExtraError if its package or jsonschema is missing; MaskwrightError if a
        number is out of range, or if the engine refuses the schema.
    Cost: the engine's, and about 2 ms a value.
    """
    check_engine(engine)
    if values < 1 or examples < 0 or timeout <= 0:
        raise MaskwrightError(
            f"values is {values}, examples is {examples} and timeout is {timeout}; expected at least 1, at least 0 and more than 0"
        )
    begin = time.perf_counter()
    given = schema if isinstance(schema, JsonSchema) else load_schema(schema, lenient=True)
    judge = InstanceJudge(given)
    if not judge.is_installed:
        raise MissingExtraError(NOT_INSTALLED)
    drawn = _Drawn(given, seed)
    text = json.dumps(given.schema, ensure_ascii=False)
    grammar = EngineGrammar(text, text, "schema.json")
    with RemoteEngine(engine, grammar, drawn.vocabulary, _tokens, python=python, timeout=timeout) as remote:
        run = _SchemaComparison(drawn, judge, remote, progress)
        run.read(values, texts, seed)
        gave_up = remote.gave_up
        differences, unlisted = run.differences(examples)
        facts = {"name": engine, **remote.facts}
    return SchemaAuditReport(
        engine=facts,
        schema=given.name,
        settings={"values": values, "seed": seed, "examples": examples, "timeout": timeout, "texts": len(texts)},
        counts=run.counts,
        keywords={key: (run.tried[key], run.accepted[key]) for key in sorted(run.tried, key=lambda k: (k[1], k[0]))},
        untested=tuple(one for one in keywords_of(given.schema) if one not in run.tried),
        differences=differences,
        unlisted=unlisted,
        failures=tuple(sorted(run.failures.items())),
        left_out=tuple(str(one) for one in given.left_out),
        gave_up=gave_up,
        seconds=time.perf_counter() - begin,
    )


def _tokens(data: bytes) -> list[int]:
    """The tokens of `byte_vocabulary` that spell some bytes."""
    return [byte + 1 for byte in data]


class _Drawn:
    """Instances of a schema, drawn under our masks, and whether our masks allow a text."""

    def __init__(self, schema: JsonSchema, seed: int) -> None:
        self.schema, self.seed = schema, seed
        self.vocabulary, documents = byte_vocabulary(), schema.options.documents
        self.is_exact = not schema.left_out

        def store(of: Any, **more: Any) -> SchemaStore:
            loose = load_schema(of, style="any", documents=documents or None, lenient=True, **more)
            return build_schema_store(loose, self.vocabulary)

        self._matcher = store(schema.schema).matcher(0)
        self._stores = [store(schema.schema, whitespace="compact")]
        closed = _closed(schema.schema)
        if closed != schema.schema:
            # If nothing has all members, only the others are drawn.
            with contextlib.suppress(SchemaError, DeadEndError, LimitError):
                self._stores.append(store(closed, whitespace="compact"))
        # Ends of strings and of values are likely, and what needs an escape is not.
        weights = np.full(self.vocabulary.size, 0.02)
        weights[[1 + ord(character) for character in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789-"]] = 1.0
        weights[[0, *(1 + ord(character) for character in '"}],:{[')]] = 12.0
        self._weights = weights

    def allows(self, text: str) -> bool:
        """Whether our masks allow a whole text. What a mask cannot say is not asked for."""
        return is_text(self._matcher, text)

    def texts(self) -> Iterator[str]:
        """Texts of instances, each as long as `_LONGEST` at most before it is closed."""
        for number in range(_DRAWN):
            for which, store in enumerate(self._stores):
                rng = random.Random(f"{self.seed}:{which}:{number}")
                try:
                    yield self._draw(store, rng)
                except (DeadEndError, LimitError, UnicodeDecodeError):
                    continue

    def _draw(self, store: SchemaStore, rng: random.Random) -> str:
        matcher = store.matcher(0)
        words = np.zeros(store.n_words, np.uint32)
        for _ in range(rng.randrange(_LONGEST)):
            matcher.fill(words)
            allowed = tokens_of(words)
            (token,) = rng.choices(allowed.tolist(), self._weights[allowed].tolist())
            if token == 0:
                break
            matcher.advance(token)
        return str((matcher.said() + matcher.short_ending().data).decode())


def _closed(schema: Any) -> Any:
    """A schema in which all objects have all members they name, and no others."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: each if key in ("enum", "const", "default", "examples") else _closed(each) for key, each in schema.items()
    }
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        found["required"] = [name for name, each in properties.items() if each is not False]
        found.setdefault("additionalProperties", False)
    return found


def _spellings(value: Any, words: Words) -> dict[str, list[tuple[str, Path]]]:
    """Texts of a value: compact and spaced, in its own order and in that of the schema.

    Each with its pieces.
    """
    found: dict[str, list[tuple[str, Path]]] = {}
    for orders, gap in product((words.orders, None), ("", " ")):
        way = [*pieces(value, gap, orders)]
        found.setdefault("".join(piece for piece, _ in way), way)
    return found


def _place(way: list[tuple[str, Path]], stop: int) -> str:
    """The JSON pointer of the innermost value in whose text the engine stops; items are *.

    stop : in bytes.
    """
    ends = accumulate(len(piece.encode("utf-8", "surrogatepass")) for piece, _ in way)
    path: Path = next((path for end, (_, path) in zip(ends, way, strict=True) if stop < end), ())
    return "".join("/" + (escaped(step) if isinstance(step, str) else "*") for step in path)


Key: TypeAlias = tuple[str, str, str]
"""What differences are counted by: kind, keyword and pointer."""
DISPUTED: Key = ("disputed", "", "")
"""Our masks say what the engine says, and jsonschema does not."""


class _SchemaComparison:
    """Tries values, and counts the differences.

    counts : values tried, by what became of them.
    tried, accepted : (keyword, pointer) -> values that break only this keyword, and how many of
        them the engine accepts.
    failures : what the engine said when it failed -> how often.
    """

    def __init__(self, drawn: _Drawn, judge: InstanceJudge, remote: RemoteEngine, progress: Progress | None) -> None:
        self.drawn, self.judge, self.remote, self.progress = drawn, judge, remote, progress
        self.words = words_of(drawn.schema.schema)
        names = ("values", "instances", "not_instances", "accepts", "refuses", "not_judged", "disputed", "failed")
        self.counts = dict.fromkeys(names, 0)
        self.tried: Counter[tuple[str, str]] = Counter()
        self.accepted: Counter[tuple[str, str]] = Counter()
        self.failures: Counter[str] = Counter()
        self._seen: dict[Key, list[Any]] = {}
        self._known: set[str] = set()

    # --- trying ---

    def read(self, values: int, texts: Sequence[str], seed: int) -> None:
        """Try values: those given, those drawn, then changed ones."""
        rng = random.Random(seed)
        # What the engine refuses already says nothing when it is changed: it is used if all are.
        pool: list[Any] = []
        refused: list[Any] = []
        for value in self._values(texts, values, pool, refused, rng):
            if self.counts["values"] >= values or self.remote.gave_up:
                return
            is_instance, is_accepted = self._try(value)
            if is_instance and not is_accepted:
                refused.append(value)
            elif is_instance and len(pool) < _POOL:
                pool.append(value)
            elif is_instance:
                pool[rng.randrange(len(pool))] = value
            if self.progress is not None and self.counts["values"] % 50 == 0:
                self.progress("values", self.counts["values"], values)

    def _values(
        self, texts: Sequence[str], values: int, pool: list[Any], refused: list[Any], rng: random.Random
    ) -> Iterator[Any]:
        """Values that are given, then drawn ones until half of all are tried, then changed ones."""
        for text in texts:
            try:
                yield exactly(value_of(text))
            except ValueError as error:
                raise MaskwrightError(f"a text to begin with is not JSON: {error}: {text[:60]!r}") from None
        for text in self.drawn.texts():
            if 2 * self.counts["values"] >= values:
                break
            with contextlib.suppress(ValueError):
                yield exactly(value_of(text))
        for _ in range(20 * values):
            value = rng.choice(pool or refused or [{}])
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                value = mutated(value, self.words, rng)
            yield value

    def _try(self, value: Any) -> tuple[bool, bool]:
        """Try a value that was not tried before.

        Returns whether it is an instance, and whether the engine says so too.
        """
        text = spell(value)
        if text in self._known or len(text) > _MOST_TEXT:
            return False, False
        self._known.add(text)
        self.counts["values"] += 1
        violations = self.judge.violations(value)
        if violations is None:
            self.counts["not_judged"] += 1
            return False, False
        self.counts["not_instances" if violations else "instances"] += 1
        try:
            key = self._difference(value, violations)
        except EngineFailed as error:
            self.counts["failed"] += 1
            self.failures[f"{error.kind}: {str(error)[:300]}"] += 1
            return not violations, False
        if key == DISPUTED:
            self.counts["disputed"] += 1
            key = None
        # Only a value that breaks one keyword says something about it.
        broken = {(one.keyword, one.pointer) for one in violations}
        if len(broken) == 1:
            self.tried.update(broken)
        if key is not None:
            if key[0] == ACCEPTS and len(broken) == 1:
                self.accepted.update(broken)
            self.counts["accepts" if key[0] == ACCEPTS else "refuses"] += 1
            self._seen.setdefault(key, []).append(value)
        return not violations, key is None

    def _difference(self, value: Any, violations: Sequence[Violation]) -> Key | None:
        """Which difference a value shows; None for none.

        Of a refused instance the pointer is into the value: where the engine stops.
        """
        spellings = _spellings(value, self.words)
        stops: list[tuple[int, str]] = []
        for text in spellings:
            stop = self._stop(text)
            if stop is None:
                break
            stops.append((stop, text))
        is_accepted = len(stops) < len(spellings)
        if is_accepted == (not violations):
            return None
        is_ours = any(map(self.drawn.allows, spellings))
        if self.drawn.is_exact and is_ours if is_accepted else not is_ours:
            return DISPUTED
        if is_accepted:
            first = min(violations, key=lambda one: (one.pointer, one.keyword))
            return ACCEPTS, first.keyword, first.pointer
        stop, text = max(stops, key=lambda one: one[0])
        return REFUSES, "", _place(spellings[text], stop)

    def _stop(self, text: str) -> int | None:
        """Where the engine refuses a text, in bytes; None if it accepts it as a whole."""
        tokens = _tokens(text.encode("utf-8", "surrogatepass"))
        self.remote.reset()
        taken = self.remote.advance(tokens)
        if taken < len(tokens):
            return taken
        words, _ = self.remote.fill()
        return None if int(words[0]) & 1 else taken

    # --- reporting ---

    def differences(self, examples: int) -> tuple[tuple[SchemaDifference, ...], dict[str, int]]:
        """The differences, the most frequent of each kind first, and how many are not listed."""
        found: list[SchemaDifference] = []
        unlisted: dict[str, int] = {}
        for kind in (ACCEPTS, REFUSES):
            keys = sorted((k for k in self._seen if k[0] == kind), key=lambda key: (-len(self._seen[key]), key))
            found += map(self._example, keys[:examples])
            if len(keys) > examples:
                unlisted[kind] = len(keys) - examples
        return tuple(found), unlisted

    def _example(self, key: Key) -> SchemaDifference:
        """A difference with a small value that shows it: smaller ones are taken while they do."""
        kind, keyword, pointer = key
        value = min(self._seen[key], key=lambda one: (len(spell(one)), spell(one)))
        tried = iter(range(_SHRINKS))
        less: Any = None if self.remote.gave_up else value
        while less is not None:
            value = less
            less = next((one for one, _ in zip(smaller(value), tried, strict=False) if self._shows(one, key)), None)
        violations = self.judge.violations(value) or []
        why = next((one.message for one in violations if (one.keyword, one.pointer) == (keyword, pointer)), "")
        text = min(_spellings(value, self.words), key=lambda text: (not self._is_example(text, kind), len(text)))
        return SchemaDifference(kind, keyword, pointer, len(self._seen[key]), text, why)

    def _shows(self, value: Any, key: Key) -> bool:
        violations = self.judge.violations(value)
        if violations is None or bool(violations) != (key[0] == ACCEPTS):
            return False
        try:
            return self._difference(value, violations) == key
        except EngineFailed:
            return False

    def _is_example(self, text: str, kind: str) -> bool:
        try:
            return (self._stop(text) is None) == (kind == ACCEPTS)
        except EngineFailed:
            return False
