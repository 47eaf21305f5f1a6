"""Chaos of PZQ; see `conformance.search.random`."""
