"""Narconi: the reference client `NarconiClient` and its mutants (``mutants_*.py``).

`ResponseReader`, `MessageReader`, `Publisher` and `Consumer` do no IO; `HttpConnection`, `Socket` and
`NarconiClient` drive them with asyncio. Mutants replace one part at a time.
"""
