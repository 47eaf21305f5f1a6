"""Chaos of NATS; see `conformance.search.random`."""
