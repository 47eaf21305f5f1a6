"""Moleculer: the mutants of `conformance.clients.reference.moleculer`."""
