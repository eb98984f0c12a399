"""What an LR parser does with a grammar. In: Grammar. Out: LALR(1) tables as arrays, and conflicts.

Knows nothing of tokens. The steps are: automaton (LR(0) states) -> lookaheads (DeRemer and
Pennello) -> tables -> domination (tables without superfluous actions) -> bisimulation (the same
language from smaller tables).
"""

from maskwright.analysis.lr.bisimulation import Partition, bisimulate, coarsest_partition
from maskwright.analysis.lr.conflicts import Conflict, conflicts
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, ERROR, LrTables
from maskwright.analysis.lr.tables import build_lr_tables

__all__ = [
    "ACCEPT",
    "CONFLICT",
    "ERROR",
    "Conflict",
    "LrTables",
    "Partition",
    "bisimulate",
    "build_lr_tables",
    "coarsest_partition",
    "conflicts",
]
