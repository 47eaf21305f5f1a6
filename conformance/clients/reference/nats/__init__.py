"""NATS: the reference client `NatsClient`.

`Parser` reads the wire, a `Link` is one connection, `Listener` one subscription of the application.
"""
