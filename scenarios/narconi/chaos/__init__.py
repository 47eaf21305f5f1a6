"""Chaos of Narconi; see `conformance.search.random`."""
