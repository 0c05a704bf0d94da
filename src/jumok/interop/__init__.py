"""Import models of other toolkits as model folders, and export model folders to other toolkits.

Only `import_model` and `describe_foreign_model` read models of other toolkits. They do this in a separate
process. Every other part of jumok reads model folders.
"""
