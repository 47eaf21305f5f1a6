"""The same seeded sequences of commands to a fake and to a real server, and where the answers differ."""
