"""Chaos of RabbitMQ Stream; see `conformance.search.random`."""
