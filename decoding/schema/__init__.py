"""Masks for JSON texts of a schema, and for texts of a pattern: the second engine.

In: a schema's table and a vocabulary's (`maskstore/schema/`), tokens. Out: the states of texts and
their masks. Nothing is computed ahead but the tables: a mask is made when it is asked for, and kept
under what it depends on (`_memo_kernels.py`). Knows nothing of keywords or models.

Reading order: `constants.py`, `_frame_kernels.py` (objects and arrays under way),
`_string_kernels.py`, `_step_kernels.py` (a byte), `_merge_kernels.py` (readings that differ only in
what is around them), `_walk_kernels.py` (a trie of tokens),
`_memo_kernels.py` (kept results), `_row_kernels.py`, `_base_kernels.py` (most of a row at once),
`_mask_kernels.py` from its end (a mask), `_union_kernels.py` (the masks of several readings),
`_repeat_kernels.py` (what must not come twice), `_text_kernels.py` (what Python calls),
`_quick_kernels.py` (what it calls most),
`compared.py` (items that the plain interpreter compares), `text.py`, `matcher.py`.
"""
