"""Narconi: the mutants of `conformance.reference.narconi`."""
