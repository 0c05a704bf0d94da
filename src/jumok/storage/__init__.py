"""What stands on the disk: folders that are written whole or not at all, weights, model folders."""

from __future__ import annotations

from jumok.storage.folders import (
    checked_json,
    disk_errors,
    is_leftover,
    read_checked_json,
    read_regular_file,
    remove_folder,
    remove_leftovers,
    standard_input,
    verify_folder,
    write_file,
    write_folder,
)
from jumok.storage.model_folder import (
    VOCABULARY_FILES,
    CorpusRecord,
    ModelCard,
    ScoreRecord,
    StoredModel,
    jumok_version,
    read_model_folder,
    read_stored_model,
    save_model,
    store_shortlist,
)
from jumok.storage.tensors import (
    load_module_weights,
    module_weights,
    refuse_misfits,
    tensors_from_bytes,
    tensors_to_bytes,
)

__all__ = [
    "VOCABULARY_FILES",
    "CorpusRecord",
    "ModelCard",
    "ScoreRecord",
    "StoredModel",
    "checked_json",
    "disk_errors",
    "is_leftover",
    "jumok_version",
    "load_module_weights",
    "module_weights",
    "read_checked_json",
    "read_model_folder",
    "read_regular_file",
    "read_stored_model",
    "refuse_misfits",
    "remove_folder",
    "remove_leftovers",
    "save_model",
    "standard_input",
    "store_shortlist",
    "tensors_from_bytes",
    "tensors_to_bytes",
    "verify_folder",
    "write_file",
    "write_folder",
]
