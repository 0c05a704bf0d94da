"""Files on disk: folders that are written atomically, weights, model folders."""
