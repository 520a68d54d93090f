"""Columnar evaluation of patterns on a document, and statements to pending update lists."""
