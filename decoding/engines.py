"""The engines: which one reads the texts of a store, and how its texts are made.

A store names its engine (`engine`). A new kind of constraint is a `TextState` and a row of
`ENGINES`: matchers, batches and generation ask for no kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from maskwright.analysis.arguments import clip, refuse_argument
from maskwright.analysis.errors import LimitError, MaskwrightError, VocabularyError
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.text import GrammarText

if TYPE_CHECKING:
    from maskwright.decoding.explain.explanation import Explanation
    from maskwright.maskstore.composition.tables import ComposedTables
    from maskwright.maskstore.schema.compiled import SchemaTables
    from maskwright.maskstore.table.compiled import EngineTable

    AnyTable: TypeAlias = EngineTable | SchemaTables | ComposedTables

MOST_TEXTS = 1 << 16
"""BOUND: the texts of a batch whose engine says no other limit; each takes 49 kB or more."""


class Opened(NamedTuple):
    """Several texts at their starts.

    texts : their states.
    many : what works on all of them at once; None if nothing does.
    n_threads : how many threads may share them, in equal runs.
    """

    texts: list[TextState]
    many: Texts | None = None
    n_threads: int = 1


class Engine(NamedTuple):
    """How the texts of a store are made.

    open : from a store and how many tokens can be taken back, the state of a text at its start.
    open_many : from these, the number of texts and of the threads that are to share them; None for
        one text after the other, in one thread.
    most_texts : of a batch; None for as many as there is memory for.
    explain : for `explain_after`; None if an open text says all there is.
    """

    open: Callable[[Any, int], TextState]
    open_many: Callable[[Any, int, int, int], Opened] | None = None
    most_texts: int | None = MOST_TEXTS
    explain: Callable[[Any, bytes, int | bytes | None], Explanation] | None = None


def _grammar(store: Any, max_rollback: int) -> TextState:
    return GrammarText(Texts(store, 1, max_rollback))


def _grammars(store: Any, max_rollback: int, size: int, n_threads: int) -> Opened:
    texts = Texts(store, size, max_rollback)
    return Opened([GrammarText(texts, slot) for slot in range(size)], texts, n_threads)


def _explain_grammar(store: Any, text: bytes, wanted: int | bytes | None) -> Explanation:
    from maskwright.decoding.explain import explain_id, explain_text, explain_token

    if wanted is None:
        return explain_text(store.grammar, text)
    return (
        explain_token(store.grammar, text, wanted, store)
        if isinstance(wanted, bytes)
        else explain_id(store, text, wanted)
    )


# PERF: the other engines are imported when their stores come


def _schema(store: Any, max_rollback: int) -> TextState:
    from maskwright.decoding.schema.text import SchemaText

    return SchemaText(store, max_rollback)


def _schemas(store: Any, max_rollback: int, size: int, n_threads: int) -> Opened:
    from maskwright.decoding.schema.text import SchemaText
    from maskwright.decoding.schema.workspace import make_workspace, shared_workspace

    # each thread has its own workspace, and keeps its own masks
    shared = shared_workspace(store.vocabulary, store.escapes, store.era)
    spaces = [shared, *(make_workspace(shared.voc) for _ in range(n_threads - 1))]
    runs = itertools.pairwise([size * i // n_threads for i in range(n_threads + 1)])
    texts: list[TextState] = [
        SchemaText(store, max_rollback, space)
        for space, (begin, end) in zip(spaces, runs, strict=True)
        for _ in range(begin, end)
    ]
    return Opened(texts, None, n_threads)


def _explain_schema(store: Any, text: bytes, wanted: int | bytes | None) -> Explanation:
    from maskwright.decoding.explain.explain import explain_schema

    return explain_schema(store.texts, store.name, text, wanted, store.vocabulary)


def _composition(store: Any, max_rollback: int) -> TextState:
    from maskwright.decoding.composition.text import ComposedText

    return ComposedText(store, max_rollback)


def _tag(store: Any, max_rollback: int) -> TextState:
    from maskwright.decoding.tags.text import TagText

    return TagText(store, max_rollback)


ENGINES = {
    # the memory of a grammar's texts is one array, which has a limit of its own
    "grammar": Engine(_grammar, _grammars, None, _explain_grammar),
    "schema": Engine(_schema, _schemas, explain=_explain_schema),
    # each text takes 100 kB or more
    "composition": Engine(_composition, None, 1 << 14),
    "tag": Engine(_tag),
}
"""By the name that a store has as its `engine`."""


def _engine_of(store: Any) -> Engine:
    found = ENGINES.get(getattr(store, "engine", ""))
    if found is None:
        refuse_store(store)
    return found


def open_text(store: Any, max_rollback: int) -> TextState:
    """The state of one text under a store, at its start.

    max_rollback : how many tokens can be taken back, 0 or more.

    Raises: MaskwrightError for what is no store, or one that has no texts (lexing 'nfa');
    LimitError if so much history takes too much memory.
    """
    return _engine_of(store).open(store, max_rollback)


def open_texts(store: Any, size: int, max_rollback: int, n_threads: int) -> Opened:
    """Several texts under a store, at their starts.

    size : at least 1. n_threads : that are to share their masks, 1 to size.

    Raises: as `open_text`; LimitError for more texts than the engine takes.
    """
    engine = _engine_of(store)
    if engine.most_texts is not None and size > engine.most_texts:
        raise LimitError(f"a batch of {clip(size)} texts is more than {engine.most_texts:,}; make smaller batches")
    if engine.open_many is not None:
        return engine.open_many(store, max_rollback, size, n_threads)
    first = engine.open(store, max_rollback)
    return Opened([first, *(first.copy() for _ in range(size - 1))])


def explain_after(store: Any, text: bytes, wanted: int | bytes | None = None) -> Explanation:
    """Where a text stops being the beginning of a legal one, or why something may not follow it.

    wanted : what comes next: the id of a token, or bytes; None to ask about the text alone.

    Raises: as `open_text`, and the explanations of the engine.
    """
    engine = _engine_of(store)
    if engine.explain is not None:
        return engine.explain(store, text, wanted)
    from maskwright.decoding.explain.explain import explain_by_state

    return explain_by_state(engine.open(store, 0), text, wanted)


def refuse_store(value: object) -> NoReturn:
    """Raises MaskwrightError for what has no matcher: it says what is wrong with it."""
    if not hasattr(value, "vocabulary") or not hasattr(value, "grammar"):
        refuse_argument("the store", value, "a store, as mw.build_store(grammar, tokenizer) returns")
    raise MaskwrightError(
        f"{value!r} cannot be used for decoding: a store with lexing 'nfa' has no matcher; load the grammar with lexing='longest'"
    )


def check_tables(stores: Sequence[Any]) -> None:
    """Check that these stores have matchers, of any kind, and are for one tokenizer.

    Raises: MaskwrightError if there is no store, or one has no matcher; VocabularyError if their
    vocabularies differ.
    """
    if not stores:
        raise MaskwrightError("no store is given; expected one, or one for each sequence")
    for store in stores:
        _engine_of(store)
        if store.vocabulary.digest != stores[0].vocabulary.digest:
            raise VocabularyError(
                f"the stores of one batch are for different vocabularies, {stores[0].vocabulary.name} and {store.vocabulary.name}; "
                "build all with the model's tokenizer"
            )
