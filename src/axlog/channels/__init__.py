"""Named flows of updates: what travels between widgets, and between axlog and the world."""
