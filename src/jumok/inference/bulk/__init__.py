"""Bulk translation of any number of lines by several processes or a Ray cluster, stored in part files."""
