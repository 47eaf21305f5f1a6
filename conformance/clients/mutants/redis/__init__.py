"""Redis: the mutants of `conformance.clients.reference.redis`."""
