"""Chaos of Redis; see `conformance.search.random`."""
