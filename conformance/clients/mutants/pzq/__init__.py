"""PZQ: the mutants of `conformance.clients.reference.pzq`."""
