"""A run from sentence pairs to a model folder: prepare, train, finish, resume."""
