"""Reports for people and machines. In: a grammar, a vocabulary, a store. Out: facts and pages."""
