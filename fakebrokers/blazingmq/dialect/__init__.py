"""How the fake BlazingMQ is compared with a real broker."""
