"""A NATS server without JetStream."""
