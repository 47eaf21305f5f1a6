"""The search for faults that a client does not survive: `systematic` at every frame, `random` by a seed.

What both share:

    client    the client: in this process on virtual time, or a process in real time
    replay    files of what failed: written, run again, made smaller
    live      the smallest plans of a client in real time, many runs side by side
    page      the parts of a page about a failure
    fixed     the same plans every time, of many clients, for pipelines
    kills     which mutants a search finds by itself

A plan is a spec of the sweep or a schedule of chaos; `fakebrokers.faults.search` shrinks one in memory.
"""
