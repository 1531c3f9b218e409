"""Small mistakes put into the scheduler one at a time, to see whether the tests find them.

- ``mistakes``: all places of a module where a small mistake can be made, and the module with one of them.
- ``belonging``: the test files that have most to do with a module.
- ``trying``: a copy of the tree with one mistake, and its tests run there: the slice, and, if the slice finds
  nothing, all examples. What the slice finds, all examples need not be asked about.

A room is drawn first, each as likely as any other, then a module of it by its number of places, then a place.

    make mutants ARGS="--seed 7 --count 40"
"""
