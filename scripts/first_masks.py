"""What a fresh process takes to its first masks, in CPU seconds: import, load, mask, advance, batch.

python scripts/first_masks.py STORE
"""

import resource
import sys

import numpy as np

import maskwright as mw

store = mw.load_store(sys.argv[1])
matcher, batch = store.matcher(), store.batch(4)
words, rows = np.zeros(store.n_words, np.int32), np.zeros((4, store.n_words), np.int32)
matcher.fill(words)
matcher.advance_bytes(b"[")
batch.fill(rows)
batch.advance([-1] * 4)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
