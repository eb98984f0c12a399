"""Running a mask store along a text: states, masks, what is allowed next.

In: a mask store and tokens. Out: masks; and texts that a model writes under these masks, on the CPU
or on a GPU.
"""

if __name__ != "maskwright.decoding":
    raise ImportError(
        "import maskwright.decoding, not decoding: a second copy of its classes would not equal the first"
    )
