"""A Redis server: publish and subscribe, strings and lists."""
