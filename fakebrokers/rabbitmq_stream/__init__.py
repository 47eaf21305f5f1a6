"""A fake RabbitMQ that speaks the stream protocol."""
