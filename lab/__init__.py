"""The laboratory: generators, laws, benchmarks, conformance and stress runs. Not in the wheel."""
