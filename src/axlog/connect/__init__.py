"""Connectors: sources bring updates from other systems, sinks take changes to them.

Modules in reading order:

    protocol.py       the interfaces of a source and a sink
    kinds.py          a kind of connector: its name in pipeline files, its options, its factory
    locations.py      local paths and addresses of other file systems
    message_paths.py  paths into a message, to its time or key
    addresses.py      which network addresses are public
    http.py           the guarded HTTP client for addresses that others supply
    databases.py      SQL databases through SQLAlchemy
    sources/          directories, JSON lines, Kafka; polling sources for feeds, tables, documents
    sinks/            tables, logs, feeds, mail, webhooks
    channels/         numbered flows of updates with subscriptions and filters
"""
