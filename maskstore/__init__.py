"""All that is computed ahead of time about a grammar and a vocabulary.

In: a grammar, its verdicts, and a tokenizer. Out: what a store holds, as entries (`EntryTable`) or
as a closed stack automaton (`EngineTable`), and the file of either. Knows nothing of a generation
in progress.
"""

if __name__ != "maskwright.maskstore":
    raise ImportError(
        "import maskwright.maskstore, not maskstore: a second copy of its classes would not equal the first"
    )
