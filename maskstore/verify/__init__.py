"""Is a table's stack automaton right? A second code path, which shares nothing with the builder."""

from maskwright.maskstore.verify.verification import MOST_FOUND, Checked, Difference, verify_table

__all__ = ["MOST_FOUND", "Checked", "Difference", "verify_table"]
