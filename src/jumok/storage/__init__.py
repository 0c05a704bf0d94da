"""Files on disk: folders that are written atomically, weights, model folders, the user's cache folder."""
