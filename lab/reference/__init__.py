"""The reference evaluator: naive implementations of the definitions, used to check all others.

`rows` implements the definition of valuations. `truth`, `satisfiable_rows` and `relevant` enumerate
the futures of the open calls within a bound. Nothing here is fast. Only tests, `why` and
re-evaluation in doubt should use it.

(Valuations: paper 3. Futures: paper 2, sections 3, 5 and 6.)
"""

from axlog.evaluate.definition import (
    Answer,
    Key,
    Valuation,
    Value,
    gather,
    row_of,
    rows,
    sorted_rows,
    valuations,
)
from lab.reference.bounds import alphabet_of, bound_of
from lab.reference.fragments import Alphabet, Fragment, fragments
from lab.reference.futures import Bound, Future, Message, futures, reachable, saturated
from lab.reference.verdicts import Outcomes, agrees, relevant, satisfiable_rows, truth

__all__ = [
    "Alphabet",
    "Answer",
    "Bound",
    "Fragment",
    "Future",
    "Key",
    "Message",
    "Outcomes",
    "Valuation",
    "Value",
    "agrees",
    "alphabet_of",
    "bound_of",
    "fragments",
    "futures",
    "gather",
    "reachable",
    "relevant",
    "row_of",
    "rows",
    "satisfiable_rows",
    "saturated",
    "sorted_rows",
    "truth",
    "valuations",
]
