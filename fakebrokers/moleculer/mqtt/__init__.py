"""The MQTT server of `fakebrokers.mqtt`, with Moleculer's packets in its messages and nodes for clients."""
