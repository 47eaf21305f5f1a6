"""An embedded MQTT 3.1.1 broker."""
