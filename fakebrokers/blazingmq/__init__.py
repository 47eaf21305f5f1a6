"""A fake BlazingMQ broker."""
