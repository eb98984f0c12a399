if __name__ != "maskwright.analysis":
    raise ImportError("import maskwright.analysis, not analysis: a second copy of its classes would not equal the first")
