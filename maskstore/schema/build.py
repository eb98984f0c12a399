"""From a schema or a pattern to the tables of its store."""

from __future__ import annotations

from maskwright.analysis.errors import DeadEndError, VocabularyError
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import write_schema, write_text
from maskwright.maskstore.vocabulary import Vocabulary


def tables_of(constraint: JsonSchema | Regex, vocabulary: Vocabulary) -> SchemaTables:
    """The tables of a JSON schema or a regular expression, for a vocabulary.

    Raises: VocabularyError if no token stands for text; LimitError if the tables grow past their
    limits; DeadEndError if nothing matches the expression.
    Cost: 10 us for each node of the schema.
    """
    if not len(vocabulary.text_ids()):
        raise VocabularyError(f"vocabulary {vocabulary.name} has no token that stands for text")
    if isinstance(constraint, Regex):
        if constraint.automaton.is_empty:
            raise DeadEndError(f"no text matches {constraint.name}, so no store is made")
        automaton = constraint.automaton
        return SchemaTables(constraint.name, automaton, vocabulary, *write_text(automaton), constraint)
    return SchemaTables(constraint.name, constraint.texts, vocabulary, *write_schema(constraint.texts), constraint)
