"""The search for faults that a client does not survive: `systematic` at every frame, `random` by a seed.

What both share:

    client    the client: in this process on virtual time, or a process in real time
    campaign  runs until the time is over; what failed is shrunk and written down
    live      many runs of a client in real time, side by side
    shrink    the smallest plans that still fail
    replay    files of what failed: written, run again, made smaller
    page      the parts of a page about a failure
    fixed     the same plans every time, of many clients, for pipelines
    kills     which mutants a search finds by itself

A plan is a spec of the sweep or a schedule of chaos. Both are run by `conformance.run.inprocess.running`.
"""
