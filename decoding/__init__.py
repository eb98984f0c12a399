if __name__ != "maskwright.decoding":
    raise ImportError("import maskwright.decoding, not decoding: a second copy of its classes would not equal the first")
