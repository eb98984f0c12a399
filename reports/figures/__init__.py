"""The figures of README and docs, and where each of them comes from. One module of `pages` for a page or a folder of pages.

A module says what its page says, with `#` where a value stands. `python scripts/records.py --update` puts today's values into the pages;
`tests/test_figures.py` fails where a page and its records differ, and for figures of which nothing is said here.
"""
