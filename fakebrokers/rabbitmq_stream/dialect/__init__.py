"""How the fake RabbitMQ is compared with a real one: what is said to both, and what answers mean."""
