"""An embedded NATS server, core protocol only."""
