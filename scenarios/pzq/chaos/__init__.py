"""Chaos of PZQ; see `conformance.chaos`."""
