"""The runtime: order, instances, state, checkpoints and delivery, for both engines.

Modules in reading order. Shared by both engines:

    connections.py       the sources and sinks of a pipeline file, opened
    order.py             the order of updates: time, stream, number; frontiers of lanes
    engine.py            the engine of one document: batches, net changes, snapshots
    unreachable.py       retries of sources and sinks
    progress.py          the progress of a run
    health.py            metrics and health of a run
    packets.py           plain data as bytes
    gc_pause.py          batches without Python's cyclic garbage collector
    upstream_filters.py  filters and unsubscriptions at channels

The embedded runner:

    embedded.py          the runner: read, order, decide a batch, apply it, deliver it
    source_reader.py     a source with its position, its lanes in the order, and its failures
    instances.py         the documents of one entry of the file, each with its engine
    systems.py           views that feed the streams of other documents
    checkpoint.py        inputs, positions and snapshots in a state log
    compatibility.py     whether a checkpoint fits a pipeline
    replay.py            why a row is there, by reading the input again
    satisfiability.py    which views of a system can ever have a row

Spark (without importing it; `axlog.spark` calls these):

    definition.py        a document as plain data
    plan.py              the partitioning of a document over buckets
    state_placement.py   state on the driver or on the executors
    message_rows.py      messages as rows of Spark
    extraction.py        the stateless half: parse, match, send bindings to buckets
    packet_rows.py       its output as rows, one for each bucket
    source_options.py    sources that plain options name
    past.py              what tasks know of earlier batches
    bucket.py            the engine of a bucket, with its order
    relation_shapes.py   the relations that its bindings are numbered by
    bucket_state.py      the state of an engine in a key-value store
    bucket_engines.py    the engines of a bucket: which wake with a batch
    driver_buckets.py    all buckets in the driver's process
    batch_state.py       the same on the driver, durable by batches
    timers.py            wall-clock time in buckets
    bucket_tuner.py      what streams are still needed for
    outlooks.py          possible rows, for the live page
    delivery.py          sinks, batch by batch
    shared_sinks.py      one numbering of batches for sinks of several queries
    wires.py             files between documents that feed each other
    hashing.py           Spark's hash of a string
    failures.py          errors of a streaming query
"""
