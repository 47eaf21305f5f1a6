"""BlazingMQ: the mutants of `conformance.reference.blazingmq`."""
