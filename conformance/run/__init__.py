"""A run of a client: what disturbs it, and its trace.

    trace      bytes as the client was handed them, ops, answers and events, in one order
    view       connections and frames of the trace, read by a decoder of its own
    facts      what the frames mean, in words that hold across protocols
    reported   what the client reported to the application of its messages
    case       all of that: what rules get
    notes      what a script did that no frame shows
    traits     what is known of a protocol, in parts
    acts       the ways to disturb a frame; generated from frame tables and roles, no protocol's name in them
    specs      which act at which frame of which base
    bases      what base scripts work with
    walks      base scripts in a random order
    common_bases           base scripts that protocols have in common
    pairs      the options of one op, each value with each value of the others, in few calls
    endings    base scripts of two ends at a time: a close while a drain waits
    concurrent_actions     what an application does besides its base: closes, cancels, asks twice
    inprocess  one spec: client and fake in this process, on virtual time
    pace       how long the pauses of a base last, where time is real
    stuck      clients in this process that do not end

How a protocol joins: its folder in ``scenarios``, or the package that its `Protocol` names (``judge``), has

1.  ``traits.py`` with ``TRAITS``, a `traits.Traits` of parts:

    *   `traits.Reading`: decoders of what client and server are handed, strict and bound to no client;
        ``track`` goes through a connection once and notes `Conn.ready`, `Conn.agreed`, `Conn.server_closing`,
        `Conn.client_closing`, `Conn.turned_away`, and in `facts.Facts` messages written and settled, ids
        taken and freed, lives of subscriptions with what was delivered in them, positions stored. Note only
        what the frames say; a fact that a protocol does not have stays empty, and the rules about it are
        silent. ``know`` adds what the application has asked for and no frame says, and what several
        connections tell together.
    *   `traits.Questions`: which frame answers which (`traits.Pairing` ties them together by the key of
        their specs), and the ops that ask one question each (`traits.Asks`).
    *   `traits.FaultMaterial`: what acts need and no frame table says.
    *   `traits.Delivery`, `traits.Settlement`, `traits.Connecting`, `traits.Peers`, where the defaults do
        not fit. What cannot be said is left out: rules ask, and say nothing then.

2.  ``sweep/bases.py``: base scripts, see `bases`. A base says what an application does, not what has to
    come of it. It begins with ``context.connect()`` and ends with ``context.finale(...)``, whose probe is
    an op that has to work once nothing disturbs the client; ``context.mark("subscribed")`` says that from
    here on all subscriptions have to be there. Bodies are unique within a base, but for the probe, which
    may be given twice. What a base does to connections itself it does by ``context.kill``. What rules have
    to know of the run, and no frame shows, goes into ``context.notes`` (`notes.Notes`). A base with the
    phase ``rounds`` asks for ``stats`` in each round: what they show must not grow, nor the pauses before
    the client connects again.

How to write a walk: `walks.walks` makes bases of steps, functions over a `walks.Walk`, each with a weight.
Keep bodies unique, and one subscription of a target at a time: what cannot be told apart is not judged.

How to write an act: a function in a module of `acts`, marked with `acts.define.act`. Its ``params`` yield,
for a frame of a run without faults, a class (for the drawing order) and a parameter of plain values, of which
the function makes effects of a fault plan. What no effect does is marked with `acts.define.act_at_frame` and
works through the `Passage` of the fault pipe. It must work for any frame at its place: in other runs another
one comes there. ``lies=True``: what the client gets may not be what the broker did.

How to write a rule: a function in a module of `conformance.rules`, marked with
``@invariant(name)``; its docstring is the rule, with the sections ``Why``, ``Rests on`` and ``Example``,
and ``Level`` where it is a SHOULD (`conformance.rules.sentences`). It gets a `case.Case` and yields a
sentence, with values as `showing.shown` has them, and the positions that prove it. What is illegal and harms
no receiver is a `facts.Should`. Compare `Position`s, not times: they have the order in which things happened,
within one segment too. Excuse by what is in the trace (a refusal came, the stream is out of step,
`Case.is_clear`), never by the name of a fault. What a correct client of another design may do is a `May`,
with the word of the contract that allows it (`conformance.clients.adapter.contract`). The rules judge runs of
scenarios too: see `conformance.suite.traced`.
The gate: no finding over the whole universe of the correct reference client.
"""
