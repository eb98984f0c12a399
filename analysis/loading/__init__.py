"""What does a grammar file say?

In: a `.lark` file, a text or a name. Out: a `Grammar` with everything that the file or the caller
states. It stands behind the other folders of `analysis`: which literals are soft or reserved
depends on patterns, and how conflicts are decided depends on the parser.
"""

from maskwright.analysis.loading.indenter import Indenter
from maskwright.analysis.loading.lark_loader import load_grammar, parse_grammar
from maskwright.analysis.loading.sources import GrammarSource, as_grammar, normalise

__all__ = ["GrammarSource", "Indenter", "as_grammar", "load_grammar", "normalise", "parse_grammar"]
