"""Data-parallel training: what an update needs from the other processes, and the backends that provide it."""
