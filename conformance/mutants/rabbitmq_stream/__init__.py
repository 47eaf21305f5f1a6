"""RabbitMQ Stream: the mutants of `conformance.reference.rabbitmq_stream`."""
