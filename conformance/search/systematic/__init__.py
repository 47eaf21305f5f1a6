"""The sweep: generated faults at every position of a few base scripts, judged by rules that always hold.

No example says what is wrong; a run is wrong when it violates one of `conformance.rules`.

    universe  every act at every frame of every base, and a second fault after a loss
    order     the order in which specs are drawn, and the ledger
    orders    the orders in which several answers may come
    children  specs on clients in processes of their own
    sweep     specs until the time is over, in `pool` side by side
    fixed     a client's list of specs, for pipelines
    campaign  a whole sweep, and its `page`
    shrink    simpler specs; `replay`: how one is written down
    kills     which mutants are found, and `alone`: by which rule and which act

How to write bases, acts and rules: `conformance.run`.
"""
