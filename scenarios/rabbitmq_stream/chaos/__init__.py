"""Chaos of RabbitMQ Stream; see `conformance.chaos`."""
