"""Moleculer: the reference node `MoleculerClient`, protocol 5 with JSON.

`NatsCodec`, `RedisCodec`, `MqttCodec` and `Incoming` do no IO; `Bus` drives a codec with asyncio. `Registry`,
`Caller`, `Server`, `Events` and `Pings` are what the node consists of.
"""
