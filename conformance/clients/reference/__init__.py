"""Small correct clients of our own, one per protocol: they pass every scenario, and mutants are made of them.

`kit` holds what they share; a protocol's package holds its own parts and, in its module ``ops``, `REFERENCE`.
"""
