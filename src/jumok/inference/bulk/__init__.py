"""Bulk translation: any number of lines by several processes or a Ray cluster, in parts that survive them."""
