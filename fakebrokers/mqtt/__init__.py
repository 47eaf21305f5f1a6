"""An MQTT 3.1.1 server."""
