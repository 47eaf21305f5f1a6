"""A run of a client: what disturbs it, and its trace.

    trace      bytes as the client was handed them, ops, answers and events, in one order
    view       connections and frames of the trace, read by a decoder of its own
    facts      what the frames mean, in words that hold across protocols
    reported   what the client reported to the application of its messages
    case       all of that: what rules get
    acts       the ways to disturb a frame; generated from frame tables and roles, no protocol's name in them
    specs      which act at which frame of which base
    bases      what base scripts work with
    walks      base scripts in a random order
    asides     what an application does besides its base: closes, cancels, asks twice
    inprocess  one spec: client and fake in this process, on virtual time
    pace       how long the pauses of a base last, where time is real
    stuck      clients in this process that do not end

How a protocol joins: a package ``scenarios/<protocol>/sweep`` with two modules (or `room.join`).

1.  ``model.py`` with ``MODEL``, an instance of a subclass of `model.Model`. What it has to give:

    *   ``answers``: which frame of the server answers which of the client; ``questions``: the other way
        round. `model.Pairing` then ties them together by the key of their specs.
    *   ``ops``: the ops of the adapter protocol that ask one question each (`model.Asks`): the frame, how
        the op's arguments map to its fields, how the answer maps to what the op returns.
    *   ``codec(side)``: a decoder of what the client or the server is handed, strict and bound to no
        client; `is_garbage`: which bad frame a client cannot skip.
    *   ``track(conn, facts)``: one pass over a connection that notes `Conn.ready`, `Conn.agreed`,
        `Conn.goodbye`, `Conn.parting`, `Conn.turned_away`, and in `facts.Facts` messages written and
        settled, ids taken and freed, lives of subscriptions with what was delivered in them, positions
        stored. Note only what the frames say; a fact that a protocol does not have stays empty, and the
        invariants about it have nothing to say.
    *   ``stored(broker)``: what the fake holds at the end; ``place(args, key)``: by what an outcome is told.
    *   ``said_by_server()``, ``specimens``, ``unasked``, ``noise``, ``happenings``, ``goodbye()``,
        ``opposite(frame)``, ``other_versions(data)``: what acts need that no frame table tells.
    *   ``spellings(frame, data)``: other bytes that mean the same; ``troubles``: acts for every connection.
    *   ``know(conns, ops, facts)``: what the application has asked for and no frame tells (signs of life,
        settings), and what several connections tell together; ``last_of(frame)``: a goodbye inside a frame;
        ``offered``, ``wrong_sending``, ``neglected``, ``streamed``, ``wrong_roster``, ``due``: what clients
        that speak to each other owe to others. They return nothing where it cannot be said.
    *   ``is_log``, ``storing``, ``size_field``, ``settings(options)``: see `Model`.

2.  ``bases.py``: about 15 base scripts, see `bases`. A base says what an application does, not what has to
    come of it. It begins with ``stage.connect()`` and ends with ``stage.finale(...)``, whose probe is an op
    that has to work once nothing disturbs the client; ``stage.mark("subscribed")`` says that from here on
    all subscriptions have to be there. Bodies are unique within a base. What a base does to connections
    itself it does by ``stage.kill``. What rules have to know of the run, and no frame shows, goes into
    ``stage.notes`` (`notes.Notes`). A base with the phase ``rounds`` asks for ``stats`` in each round: what
    they show must not grow, nor the pauses before the client connects again.

How to write a walk: `walks.walks` makes bases of steps, functions over a `walks.Walk`, each with a weight.
Keep bodies unique, and one subscription of a target at a time: what cannot be told apart is not judged.

How to write an act: a function in a module of `acts`, marked with `acts.define.act`. Its ``params`` yield,
for a frame of a run without faults, a class (for the drawing order) and a parameter of plain values; it does
its work through the `Passage` of the fault pipe. It must stand any frame at its place: in other runs another
one comes there. ``lies=True``: what the client is told may not be what the broker did.

How to write a rule: a function in a module of `conformance.rules`, marked with
``@invariant(name)``; its docstring is the rule, with the sections ``Why``, ``Rests on`` and ``Example``,
and ``Level`` where it is a SHOULD (`conformance.rules.sentences`). It gets a `case.Case` and yields a
sentence, with values as `showing.shown` has them, and the moments that prove it. What is illegal and harms
no receiver is a `facts.Should`. Compare `Moment`s, not times: they have the order in which things happened,
within one segment too. Excuse by what is in the trace (a refusal came, the stream is out of step,
`Case.is_clear`), never by the name of a fault. What a correct client of another design may do is a `May`,
with the word of the contract that allows it (`conformance.clients.adapter.contract`). The rules judge runs of
scenarios too: see `conformance.suite.traced`.
The gate: no finding over the whole universe of the correct reference client.
"""
