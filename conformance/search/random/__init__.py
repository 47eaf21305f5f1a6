"""Chaos: workloads under schedules of faults that are drawn from a seed.

A sweep is systematic and disturbs one frame of a short script; a chaos run is longer, random, and mixes
everything. Each run has two phases. In the safety phase a workload goes on while a schedule disturbs it. Then
everything is healed, and in the liveness phase the client has to work again and its consumers get all that
is there (the drain), so that "nobody ever got it" means something.

    schedule   what a run is, as plain values; its faults at frames come from `fakebrokers.faults.drawing`
    actions    what a protocol gives: how to publish, consume and ask in ops of the adapter protocol
    workload   what the application does: publish, consume, ask, or all of it; `script`: a base of the sweep
    context    what a workload works with, and the steps that disturb it
    acts       acts of the sweep at frames, with parameters that are drawn where they take place
    nemesis    what happens to the whole: partitions, crashes, clocks, slow links
    toxics     the same by a Toxiproxy in front of a real server
    draw       a schedule from a seed
    run        one schedule: client and fake, on virtual time or in real time
    history    the journal of a run, and what its contract promises
    verdict    all invariants and all checkers on one run
    shrink     simpler schedules; `replay` and `page`: how one is written down
    campaign   many seeds, in `runs` side by side; `corpus`: those that failed before
    fixed      a client's seeds, for pipelines

How a protocol joins: a package ``scenarios/<protocol>/chaos`` with a module ``actions.py`` that has
``ACTIONS``, an instance of a subclass of `actions.Actions`, and, where it has some of its own, ``NEMESES``, a
list of `nemesis.Nemesis`.

How to write a nemesis: a subclass of `nemesis.Nemesis` with ``draw`` (arguments as plain values) and ``rows``
(what it is in a fault plan, see `fakebrokers.faults.disturbances`). What no plan can have does ``begun``, and
``heal``, which has to work after a cancellation too; `in_plan` is False then.
The gate: the correct reference client passes whatever is drawn.
"""
