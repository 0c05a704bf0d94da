"""Models of other toolkits: import them as model folders, export model folders to them.

Only `import_model` and `describe_foreign_model` read such models, in a process of their own; every other part
of jumok reads model folders.
"""

from jumok.interop.conversion import ImportChoices
from jumok.interop.exporting import EXPORT_FORMATS, export_model
from jumok.interop.importing import ImportReport, describe_foreign_model, import_model

__all__ = [
    "EXPORT_FORMATS",
    "ImportChoices",
    "ImportReport",
    "describe_foreign_model",
    "export_model",
    "import_model",
]
