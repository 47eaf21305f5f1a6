"""RabbitMQ's management HTTP API, as far as streams reach.

What tools and the test suites of clients ask first: overview, nodes, health checks; connections with their
publishers and consumers, and the end of a connection; streams as queues, super streams as exchanges with
bindings; virtual hosts, users, permissions, limits, policies and definitions. Shapes and status codes are
those of the real one, measured on 3.10.8 and 4.3.6; what is asked wrongly is answered with 4xx, a place and
what was expected there.

Names are percent-encoded in paths (``%2F`` is the virtual host "/"); a slash at the end changes nothing.
Every request needs Basic authentication with a user of the fake.
"""
