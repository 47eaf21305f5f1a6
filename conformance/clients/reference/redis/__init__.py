"""Redis: the reference client `RedisClient`.

`Parser` reads RESP, `Link` is one connection, `Line` keeps one that comes back; the client has a line for
commands, one for subscriptions, and a connection for each blocking pop.
"""
