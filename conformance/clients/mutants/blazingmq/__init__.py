"""BlazingMQ: the mutants of `conformance.clients.reference.blazingmq`."""
