"""The Redis server of `fakebrokers.redis`, with Moleculer's packets in its messages and nodes for clients."""
