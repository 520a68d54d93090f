"""The faces: documents with views, and widgets that streams feed."""
