"""``pytest --fakebrokers-mutate``: a project's tests against brokers and lines that misbehave.

The tests run once as they are, and it is noted which behaviours each of them would meet. Then, for each wrong
behaviour, the tests that would meet it run again with its fault in their fakes, until one of them fails: that
one has noticed. Whatever none notices is in a table, with the lines of the journal in which it took place.

`behaviours` has them as data, `lives` sees which fakes live in a test, `reruns` runs tests again in child
processes, `trial` decides what is run and what follows from it, `plugin` is what pytest loads.
"""
