"""Models of other toolkits: they are imported as model folders, and model folders are exported for them.

Only `import_model` and `describe_foreign_model` read models of other toolkits. They do this in a separate
process. Every other part of jumok reads model folders.
"""
