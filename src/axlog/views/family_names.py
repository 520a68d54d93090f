"""The names of members of families: the name of the family, and what tells them apart.

late["INRIA"]    the row of a table of a pipeline file
late[]           the pilot, a member that no table has: it keeps the plan
late@ann/mine    the member `mine` of a subscriber
"""

PILOT = "[]"
"""The end of the name of a member that no table has: it keeps the plan of a family."""
OWNED = "@"
"""What stands between a family and a member that a subscriber added."""
GENERATION = 1 << 32
"""The positions of such a member after a restart start at a multiple of it, which no earlier
position reaches: a reader that names an earlier one gets a snapshot."""


def is_pilot(view: str) -> bool:
    """Whether a view is the pilot of a family."""
    return view.endswith(PILOT)


def family_of(member: str) -> str:
    """The name of the family of a table's member; that of another view as it is."""
    return member.partition("[")[0]


def is_member(view: str) -> bool:
    """Whether a name is that of a table's member: other names have no bracket."""
    return "[" in view


def shown_with(view: str) -> str:
    """The name under which figures of a view are summed: that of its family, or its own."""
    return family_of(view).partition(OWNED)[0]
