"""The adapter protocol: how the suite drives a client under test, in any language.

`kit` is what adapters are written with and needs the standard library only, so nothing is imported here.
"""
