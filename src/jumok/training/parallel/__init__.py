"""Data-parallel training: the interface between an update and the other processes, and its backends."""
