"""BlazingMQ: the reference client `BlazingClient`.

It lists BER and JSON, makes no GUIDs, comes back after a loss and opens its queues again. What was posted and
not acknowledged before a loss ends as unknown: without GUIDs no broker tells a copy from a new message.
"""
