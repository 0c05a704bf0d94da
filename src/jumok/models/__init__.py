"""Model families, built from attention."""
