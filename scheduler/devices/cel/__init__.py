"""Selectors of devices: expressions in CEL, in the one environment that Kubernetes has for them.

A device class and a request of a claim say by expressions which devices will do. ``compile_selector`` compiles a text
as kube-scheduler does with what is stored already: everything that any version or gate knows is there. The selector is
then put to many devices.

The evaluator is our own: types, errors and costs are those of cel-go and of Kubernetes' libraries, to the letter where
people read them, and what a tenant writes cannot break, stop or fill up the process, which no package for this can
promise. From a text to an answer:

    lexer, parser, macros   words, then a tree; macros are loops (``syntax`` has the tree)
    checker, kinds          which type each part has, and which overload a call means
    validating              literals that make sense
    compiling, calling,     functions that call one another; a ``Run`` is handed through them, with the variables and
    chains, folding         what it has cost
    selecting               the above in order, and errors in words

``overloads`` is what a library is, ``library`` all of them: ``operators``, ``conversions``, ``strings``, ``lists``
and so on. ``patterns`` and ``matching`` are regular expressions as RE2 has them. ``mentions`` says which attributes an
answer depends on. A compiled selector never changes, so threads may share it.

Known differences from upstream:

- An expression may be nested as deep as ``parser.DEPTH_LIMIT`` says; cel-go allows 250 levels of its own counting.
- What upstream does for nothing, such as copying lists, is bounded too (``running.WORK_LIMIT``); so is the size of a
  pattern. Where that is too much, an evaluation ends like one that costs too much.
- Patterns know the categories of Unicode and not its scripts (Greek, Han).
- There is no authorizer, and no type has fields that an expression could name (``google.protobuf.Int64Value{}``).
- In a map, keys that are equal numbers of different types are one key.
- Maps are gone through in the order in which they were made; upstream does it in any order.
- The first thing that is wrong with the syntax is named in upstream's words where they are plain.
- Upstream breaks at a few expressions (``[?device.attributes["d"].a]``); they are evaluated here.

Does not belong here: how claims, classes and slices are read, and which device is chosen.
"""

from scheduler.devices.cel.device import BROKEN, SelectedDevice, Value, Version
from scheduler.devices.cel.errors import CompileError, EvaluationError
from scheduler.devices.cel.quantity import Quantity, QuantityError, read_quantity
from scheduler.devices.cel.selecting import COST_LIMIT, Selector, compile_selector

__all__ = [
    "BROKEN",
    "COST_LIMIT",
    "CompileError",
    "EvaluationError",
    "Quantity",
    "QuantityError",
    "SelectedDevice",
    "Selector",
    "Value",
    "Version",
    "compile_selector",
    "read_quantity",
]
