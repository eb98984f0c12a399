"""What is known of a vocabulary where two languages meet?

In: a vocabulary. Out: the places at which its tokens can be cut in two (`splits.py`), and what they
say inside a JSON string (`json_strings.py`); the stores of a host and its parts, side by side
(`tables.py`). Knows nothing of a text under way.
"""
