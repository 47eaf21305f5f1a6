"""NATS: the mutants of `conformance.clients.reference.nats`."""
