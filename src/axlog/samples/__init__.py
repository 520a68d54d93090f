"""Sample documents and messages, for `axlog generate` and `axlog demo`.

In reading order:

- `chance`: seeded random draws that are the same on every Python version
- `vocabulary`: the words of generated documents
- `prose`: running text with markup
- `auction`: auction documents after the XMark DTD
- `orders`: the order monitor: a document, queries, and messages of two streams
- `payments`: ISO 20022 payment messages
- `supply_chain`: a simulated supply chain that exchanges UBL documents, and its pipeline
"""
