"""What does a grammar file say?

In: a `.lark` file, a text or a name. Out: a `Grammar` with all that its file or the caller says of it. Behind the other folders, since
what is soft or reserved depends on patterns, and how conflicts are decided on the parser.
"""

from maskwright.analysis.loading.indenter import Indenter
from maskwright.analysis.loading.lark_loader import load_grammar, parse_grammar
from maskwright.analysis.loading.sources import GrammarSource, as_grammar, normalise

__all__ = ["GrammarSource", "Indenter", "as_grammar", "load_grammar", "normalise", "parse_grammar"]
