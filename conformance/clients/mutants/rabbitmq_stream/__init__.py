"""RabbitMQ Stream: the mutants of `conformance.clients.reference.rabbitmq_stream`."""
