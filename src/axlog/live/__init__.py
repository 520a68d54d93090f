"""Live documents: XML that statements and streams change, views that follow, durability.

The modules in reading order:

    options               `Options`: how a document is kept
    document              `Document`: the public face
    change_feed           `ChangeFeed`: the changes of a view, for `for` and `async for`
    maintained            `MaintainedTree`: the tree, its views, and updates to both
    savepoint             `Savepoint`: the state that a failed batch returns to
    hooks                 `StreamHooks`: the calls that a maintained tree makes to its streams
    internals             access to the inside of a `Document` for other packages

    streams               `Streams`: applies the messages that feed a document
    stream_engine         matches and joins messages without making nodes
    key_guard             rejects messages that repeat a value of an enforced key
    join_sweeps           when joins with `not`s drop rows that no row to come can use
    collection            what a collection dropped
    collector             drops rows, streams and subtrees that no future row can use
    never_tracker         emits the `never` changes of every view
    never_evidence        how each view's `never` changes are found, and the choice between ways
    provenance            computes which rows each stream can still contribute to
    exact_relevance       decides relevance exactly, for small documents
    tuner                 filters streams down to the messages that views can still use
    source_filter         builds the filter that a stream's source can run
    relevance             `axlog.relevance`: which streams can still matter to a query

    store                 `axlog.open`: opens or makes a durable document
    durable               `DurableDocument`: a document whose updates are logged
    log_records           the records of the log, and how to apply them
    recovery              restores a document from its snapshot and log
    compaction            writes a snapshot in a separate process
    outbox                `Outbox`: delivers changes to a publisher's sink
    verification          replays and checks a store without opening it

    file_watch            `axlog.watch_file`: views over a file that changes
    metrics               metrics and health of documents, and metrics of the process
"""
