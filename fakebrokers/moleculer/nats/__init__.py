"""The NATS server of `fakebrokers.nats`, with Moleculer's packets in its messages and nodes for clients."""
