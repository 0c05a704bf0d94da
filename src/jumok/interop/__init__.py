"""Models of other toolkits: import them as model folders, export model folders to them.

Only `import_model` and `describe_foreign_model` read such models, in a process of their own; every other part
of jumok reads model folders.
"""
