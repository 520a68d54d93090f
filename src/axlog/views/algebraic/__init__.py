"""The algebraic engine (P5): statements propagated a set at a time, over delta tables."""
