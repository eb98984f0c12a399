"""Matchers of each kind: of a grammar's store, a schema's or a pattern's, a composition's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from maskwright.analysis.arguments import refuse_argument
from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    # PERF: the schema engine is imported when a schema comes, and the like
    from typing_extensions import TypeIs

    from maskwright.decoding.composition.matcher import ComposedMatcher
    from maskwright.decoding.schema.matcher import SchemaMatcher
    from maskwright.maskstore.composition.tables import ComposedTables

    AnyMatcher: TypeAlias = Matcher | SchemaMatcher | ComposedMatcher
    AnyTable: TypeAlias = EngineTable | SchemaTables | ComposedTables


def make_matcher(store: AnyTable, max_rollback: int) -> AnyMatcher:
    """The state of one text under a store of any kind, at its start.

    max_rollback : how many tokens `rollback` can take back.

    Raises: as `Matcher`, `SchemaMatcher` and `ComposedMatcher`.
    """
    if isinstance(store, SchemaTables):
        from maskwright.decoding.schema.matcher import SchemaMatcher

        return SchemaMatcher(store, max_rollback)
    if is_composed(store):
        from maskwright.decoding.composition.matcher import ComposedMatcher

        return ComposedMatcher(store, max_rollback)
    return Matcher(store, max_rollback)


def is_composed(value: object) -> TypeIs[ComposedTables]:
    """Whether a value is a composition's store, without importing what only compositions need."""
    # PERF: whoever holds such a store has imported it
    tables = sys.modules.get("maskwright.maskstore.composition.tables")
    return tables is not None and isinstance(value, tables.ComposedTables)


def is_matcher(value: object) -> bool:
    """Whether a value is a matcher of any kind."""
    if isinstance(value, Matcher):
        return True
    store = getattr(value, "store", None)
    if is_composed(store):
        from maskwright.decoding.composition.matcher import ComposedMatcher

        return isinstance(value, ComposedMatcher)
    if not isinstance(store, SchemaTables):
        return False
    from maskwright.decoding.schema.matcher import SchemaMatcher

    return isinstance(value, SchemaMatcher)


def name_of(store: AnyTable) -> str:
    """What messages call a store's grammar, schema, pattern or composition."""
    return store.grammar.name if isinstance(store, EngineTable) else store.name


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
        if not isinstance(store, EngineTable | SchemaTables) and not is_composed(store):
            refuse_store(store)
        if store.vocabulary.digest != stores[0].vocabulary.digest:
            raise VocabularyError(
                f"the stores of one batch are for different vocabularies, {stores[0].vocabulary.name} and {store.vocabulary.name}; "
                "build all with the model's tokenizer"
            )


__all__ = ["check_tables", "is_composed", "is_matcher", "make_matcher", "name_of", "refuse_store"]
