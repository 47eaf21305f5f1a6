"""MQTT 3.1.1: the reference client `MqttClient`.

`Exchanges` keeps what outlives a connection where the session lasts (docs/protocols/mqtt.md, 2 and 3), and
says without any input or output which packet is next. A `Link` is one connection, `Subscriptions` are what
the application listens to.
"""
