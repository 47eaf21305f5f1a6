"""RabbitMQ Stream: the reference client `StreamClient`.

`Connection` with its `Handshake` and `Requests`, `Publisher` and `Subscription` do no IO and get the time as
an argument; `Link` carries a connection. `Links`, `Locator`, `Publishing`, `Consuming`, `SuperStreams` and
`Recovery` are what the client consists of.
"""
