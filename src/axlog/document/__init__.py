"""The document: a tree in columns, its identifiers, and the updates that change it."""
