"""Scenarios for nodes of Moleculer."""
