"""Moleculer: the mutants of `conformance.reference.moleculer`."""
