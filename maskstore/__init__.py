"""All that is computed ahead of time about a grammar and a vocabulary.

In: a grammar's verdicts and a tokenizer. Out: the store, of entries (`EntryTable`) or of a
closed stack automaton (`EngineTable`), and its file. Knows nothing of a generation in progress.
"""

if __name__ != "maskwright.maskstore":
    raise ImportError(
        "import maskwright.maskstore, not maskstore: a second copy of its classes would not equal the first"
    )
