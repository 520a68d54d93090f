"""Plans kept incrementally: collections of tuples, their groups and aggregates."""
