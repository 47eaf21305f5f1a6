"""Narconi: the mutants of `conformance.clients.reference.narconi`."""
