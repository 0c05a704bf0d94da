"""Data-parallel training: the protocol that an update speaks, and its backends."""
