"""RabbitMQ Stream: the reference client `StreamClient` and its mutants (``mutants_*.py``).

The client consists of four parts, which mutants replace one at a time: `Connection`, `Publisher` and
`Subscription` do no IO and get the time as an argument; `StreamClient` drives them with asyncio.
"""
