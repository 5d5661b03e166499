"""The native engine: Cython modules, each beside a pure one of the same API (`playhall.engine.backend`)."""
