"""PZQ: the mutants of `conformance.reference.pzq`."""
