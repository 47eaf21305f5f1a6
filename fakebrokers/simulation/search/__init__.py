"""Search: a whole system under drawn faults, many seeds, the smallest schedule that still fails.

world      the function of a user that builds a system, and what checks it
machine    or a state machine of Hypothesis, whose rules the seed draws, too
schedule   what one run is, as plain values, and the file of one that failed
survey     an undisturbed run: who takes part, and what went over the wire
nemeses    what happens to hosts, lines, brokers and applications
draw       a schedule from a seed
outages    a schedule at work
run        one run: how it ended
worker     a process in which runs are forked, so that each finds the modules as they were imported
campaign   many seeds in several workers; what fails is shrunk
page       what is printed and written down of a failure
command    ``fakebrokers simulate``
"""
