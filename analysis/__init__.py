"""What can be known of a grammar without a tokenizer.

In: grammars. Out: terminals' automata, LALR tables, verdicts on terminal sequences. Knows nothing
of tokens.
"""

if __name__ != "maskwright.analysis":
    raise ImportError(
        "import maskwright.analysis, not analysis: a second copy of its classes would not equal the first"
    )
