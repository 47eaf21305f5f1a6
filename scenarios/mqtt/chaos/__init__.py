"""Chaos of MQTT; see `conformance.search.random`."""
