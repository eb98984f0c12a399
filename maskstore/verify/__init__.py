"""Is a table's stack automaton right? A second code path, which shares nothing with the builder."""

from maskwright.maskstore.verify.verification import Checked, Difference, verify_table

__all__ = ["Checked", "Difference", "verify_table"]
