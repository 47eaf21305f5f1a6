"""Narconi: queues over HTTP and WebSocket, as a fake without RabbitMQ behind it."""
