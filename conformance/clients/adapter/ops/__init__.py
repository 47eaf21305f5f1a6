"""The ops of the adapter protocol as values: what each takes, what it gives, and who needs it.

``core`` has those that every protocol knows. A protocol has a module of its own here, named like its
fixture, which says in its `Profile` what it adds; `conformance.clients.adapter.profile` finds it.
``schema.json`` and the tables of ``ADAPTER.md`` are written from them by ``python -m ci.generate``.
"""
