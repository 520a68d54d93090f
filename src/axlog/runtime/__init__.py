"""Running a pipeline: order, instances, state, checkpoints and delivery, for both engines."""
