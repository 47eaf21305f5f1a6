"""Base scripts of MQTT, and what its frames mean; see `conformance.run`."""
