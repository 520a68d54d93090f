"""The document that changes: statements, streams, views, durability."""
