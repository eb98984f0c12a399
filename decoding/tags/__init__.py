"""Texts of what stands around the parts of a structural tag.

In: rules over literals (`analysis/composition/tag_rules.py`). Out: where a text stands in them, and
which bytes may come. Knows nothing of what stands in the parts: `decoding/composition` does.
"""
