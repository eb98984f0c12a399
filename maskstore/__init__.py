if __name__ != "maskwright.maskstore":
    raise ImportError("import maskwright.maskstore, not maskstore: a second copy of its classes would not equal the first")
