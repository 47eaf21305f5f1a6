"""Chaos of BlazingMQ; see `conformance.chaos`."""
