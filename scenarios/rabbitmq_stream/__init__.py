"""RabbitMQ Stream: sections RMQS-1 to RMQS-6 of the catalogue."""
