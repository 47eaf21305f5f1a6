"""Chaos of BlazingMQ; see `conformance.search.random`."""
