"""Narconi: the reference client `NarconiClient`.

`ResponseReader`, `MessageReader`, `Publisher` and `Consumer` do no IO; `HttpConnection` and `Socket` drive
them with asyncio. `HttpApi`, `WebSockets` and `Publishers` are what the client consists of.
"""
