"""Chaos of Narconi; see `conformance.chaos`."""
