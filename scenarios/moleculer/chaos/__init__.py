"""Chaos of Moleculer; see `conformance.search.random`."""
