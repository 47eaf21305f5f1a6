"""MQTT: the mutants of `conformance.clients.reference.mqtt`."""
