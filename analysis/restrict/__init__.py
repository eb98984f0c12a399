"""How is a grammar narrowed?

In: a grammar and restrictions (`no_comments`, `function_name=[a-z_]+`). Out: a grammar of fewer
texts. Knows nothing of files.
"""
