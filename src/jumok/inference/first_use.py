"""The first use of a model folder: a child process loads its files before this process does.

SentencePiece and CTranslate2 are written in C++. A crafted file may end the process that loads it, instead of
raising an error. The user's cache folder has a list of checked model folders (`storage/user_cache.py`). The
files of any other folder are first loaded in a child process. If the child succeeds, the folder is added to
the list. Models that this user trained are on the list from the start. If the list cannot be written, every
use is a first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError, StorageError
from jumok.storage.user_cache import is_checked, remember_checked
from jumok.system.processes import python_command

if TYPE_CHECKING:
    from jumok.storage.model_folder import StoredModel

REFUSED = 3
"""Exit code of a child that refuses the files, with the error message on its standard output."""
KILLED = -9
"""Exit code after SIGKILL, which Windows does not have."""
MAX_SECONDS = 900.0

_REFUSE = f"""
except ModelFolderError as error:
    sys.stdout.buffer.write(str(error).encode())
    sys.exit({REFUSED})
"""
# The arguments are the name and the size of each file. The standard input has the contents of these files,
# one after the other. The code is ASCII: in some locales a command line cannot have other characters.
_TRY_TOKENIZERS = f"""
import sys
from jumok.errors import ModelFolderError
from jumok.text.tokenizer_files import tokenizers_from_files
sizes = dict(zip(sys.argv[1::2], map(int, sys.argv[2::2]), strict=True))
try:
    tokenizers = tokenizers_from_files({{name: sys.stdin.buffer.read(sizes[name]) for name in sizes}})
    for tokenizer in (tokenizers.source, tokenizers.target):
        if not tokenizer.token_shape:  # pictures are not text
            tokenizer.decode(tokenizer.encode("Hello, \\uC138\\uACC4! \\u0301"))
{_REFUSE}"""
_TRY_CONVERSION = f"""
import sys
from jumok.errors import ModelFolderError
from jumok.inference.loading import try_conversion
try:
    try_conversion(*sys.argv[1:])
{_REFUSE}"""


def check_tokenizers(stored: StoredModel) -> None:
    """Raise a ModelFolderError if SentencePiece crashes on the tokenizers of a folder, or refuses them."""
    if is_checked(stored.digest):
        return
    files = stored.tokenizers
    arguments = [text for name, data in files.items() for text in (name, str(len(data)))]
    command = python_command(_TRY_TOKENIZERS, *arguments)
    if _run("SentencePiece", command, stored, b"".join(files.values())):
        remember_checked(stored.digest)


def check_conversion(stored: StoredModel) -> None:
    """Raise a ModelFolderError if CTranslate2 crashes on a model. The child stores the converted model."""
    if (
        stored.converted_files is None and stored.card.recipe.model.family != "transformer"
    ):  # CTranslate2 never loads such a model
        return
    if is_checked(stored.conversion_digest):
        return
    command = python_command(_TRY_CONVERSION, str(stored.folder.absolute()), stored.digest)
    if _run("CTranslate2", command, stored, b""):
        remember_checked(stored.conversion_digest)


def _run(library: str, command: list[str], stored: StoredModel, data: bytes) -> bool:
    """Run a child process, and return whether it succeeded. Raise if it crashed or refused the files.

    After any other failure, e.g. a lack of memory or a bug, return False. The caller then loads the files in
    this process, which raises the same error with its message.
    """
    import subprocess  # start-up

    cause = "Perhaps it is damaged, or made to do harm."
    try:
        child = subprocess.run(command, input=data, capture_output=True, check=False, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        reason = f"{library} did not load it within {MAX_SECONDS / 60:.0f} minutes"
    except OSError as error:
        raise StorageError(
            f"{stored.folder} is used for the first time, and the process that loads it first could not be "
            f"started: {error.strerror or error}. Close other programs, then run the same command again."
        ) from error
    else:
        if child.returncode == REFUSED:
            raise ModelFolderError(f"{stored.folder}: {child.stdout.decode(errors='replace').strip()}")
        if child.returncode in (0, 1):  # 1: Python has printed an exception
            return child.returncode == 0
        if child.returncode == KILLED:
            reason = f"the process that loaded it with {library} was killed, perhaps for lack of memory"
        else:
            reason = f"{library} crashed on it ({_describe_exit(child.returncode)})"
            cause = "It is damaged, or made to do harm."
    raise ModelFolderError(
        f"{stored.folder} cannot be used: {reason}. {cause} Copy the folder again from its origin, and use "
        "only folders that you trust."
    )


def _describe_exit(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    import signal  # start-up

    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
