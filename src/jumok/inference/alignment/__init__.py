"""Word alignments: links read from attention, and symmetrisation of two directions."""
