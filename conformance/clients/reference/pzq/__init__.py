"""PZQ: the reference client `PzqClient`.

`Producer`, `Consumer` and `Inquirer` each own a socket and know its messages; a `Connector` gives them the
socket, over ZeroMQ or in memory.
"""
