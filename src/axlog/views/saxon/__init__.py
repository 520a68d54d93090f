"""Views of any XQuery 3.1 query, evaluated by SaxonC-HE (the extra `xquery`).

- `worker.py`: the process that runs Saxon
- `process.py`: starts it, asks it, and ends it when it exceeds a limit
- `documents.py`: the document of a tree as Saxon has it, built once for each version
- `relevance.py`: whether an update is outside everything that a query reads
- `maintainer.py`: the rows of a view, and their changes
"""
