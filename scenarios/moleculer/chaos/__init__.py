"""Chaos of Moleculer; see `conformance.chaos`."""
