"""The engines: which one reads the texts of a store, and how its texts are made.

Nothing else asks for the kind of a store's constraint.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from maskwright.analysis.arguments import clip, refuse_argument
from maskwright.analysis.errors import LimitError, MaskwrightError, VocabularyError
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.grammar.text import GrammarText

if TYPE_CHECKING:
    from maskwright.maskstore.composition.tables import ComposedTables
    from maskwright.maskstore.schema.compiled import SchemaTables
    from maskwright.maskstore.table.compiled import EngineTable

    AnyTable: TypeAlias = EngineTable | SchemaTables | ComposedTables

ENGINES = ("grammar", "schema", "composition")
"""What `engine` of a store may be."""

MOST_TEXTS = {"schema": 1 << 16, "composition": 1 << 14}
"""BOUND: the texts of a batch; each takes 49 kB or more, of a composition 100 kB. (Grammars
have one array of memory for all, with its own limit.)"""


def open_text(store: Any, max_rollback: int) -> TextState:
    """The state of one text under a store, at its start.

    max_rollback : how many tokens can be taken back, 0 or more.

    Raises: MaskwrightError for what is no store, or one that has no texts (lexing 'nfa');
    LimitError if so much history takes too much memory.
    """
    engine = getattr(store, "engine", None)
    if engine == "grammar":
        return GrammarText(Texts(store, 1, max_rollback))
    # PERF: the other engines are imported when their stores come
    if engine == "schema":
        from maskwright.decoding.schema.text import SchemaText

        return SchemaText(store, max_rollback)
    if engine == "composition":
        from maskwright.decoding.composition.text import ComposedText

        return ComposedText.begun(store, max_rollback)
    refuse_store(store)


def open_texts(store: Any, size: int, max_rollback: int, n_threads: int) -> tuple[list[TextState], Texts | None, int]:
    """The states of several texts under a store, at their starts.

    size : at least 1. n_threads : that are to share their masks, 1 to size.

    Returns the states; what works on all of them at once, if the engine has it; how many threads
    may share them, in equal runs.

    Raises: as `open_text`; LimitError past `MOST_TEXTS`.
    """
    engine = getattr(store, "engine", "")
    if size > (most := MOST_TEXTS.get(engine, size)):
        raise LimitError(f"a batch of {clip(size)} texts is more than {most:,}; make smaller batches")
    first = open_text(store, max_rollback)
    if isinstance(first, GrammarText):
        texts = Texts(store, size, max_rollback)
        return [GrammarText(texts, slot) for slot in range(size)], texts, n_threads
    if engine == "composition":
        return [first, *(first.copy() for _ in range(size - 1))], None, 1
    from maskwright.decoding.schema.text import SchemaText
    from maskwright.decoding.schema.workspace import make_workspace, shared_workspace

    # each thread has its own workspace, and keeps its own masks
    shared = shared_workspace(store.vocabulary, store.escapes, store.era)
    spaces = [shared, *(make_workspace(shared.voc) for _ in range(n_threads - 1))]
    runs = itertools.pairwise([size * i // n_threads for i in range(n_threads + 1)])
    states: list[TextState] = [
        SchemaText(store, max_rollback, space)
        for space, (begin, end) in zip(spaces, runs, strict=True)
        for _ in range(begin, end)
    ]
    return states, None, n_threads


def refuse_store(value: object) -> NoReturn:
    """Raises MaskwrightError for what has no matcher: it says what is wrong with it."""
    if not hasattr(value, "vocabulary"):
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
        if getattr(store, "engine", None) not in ENGINES:
            refuse_store(store)
        if store.vocabulary.digest != stores[0].vocabulary.digest:
            raise VocabularyError(
                f"the stores of one batch are for different vocabularies, {stores[0].vocabulary.name} and {store.vocabulary.name}; "
                "build all with the model's tokenizer"
            )


__all__ = ["MOST_TEXTS", "check_tables", "open_text", "open_texts", "refuse_store"]
