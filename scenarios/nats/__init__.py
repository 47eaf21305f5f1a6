"""NATS: publishers, subscriptions and requests."""
