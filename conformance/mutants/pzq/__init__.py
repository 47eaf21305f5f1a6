"""PZQ: the reference client `PzqClient` and its mutants (``mutants_*.py``).

`Producer`, `Consumer` and `Inquirer` each own one socket and know its messages; a `network` gives them the
socket, over ZeroMQ or in memory. Mutants replace one part at a time.
"""
