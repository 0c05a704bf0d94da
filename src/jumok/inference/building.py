"""Build the model of a model folder. This needs torch; `loading.py` does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from jumok.errors import ModelFolderError
from jumok.models.build import build_model
from jumok.storage.tensors import check_weights_fit
from jumok.text.picture_tokenizer import PictureTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jumok.config.recipe import ModelSettings
    from jumok.models.model import Model
    from jumok.storage.model_folder import StoredModel
    from jumok.text.tokenizer import TokenizerPair


def build_for_tokenizers(settings: ModelSettings, tokenizers: TokenizerPair) -> Model:
    """Return a new model for the tokens of these tokenizers."""
    source = tokenizers.source
    return build_model(
        settings,
        source_vocab_size=source.vocab_size,
        target_vocab_size=tokenizers.target.vocab_size,
        shared=tokenizers.shared,
        grid=source.grid if isinstance(source, PictureTokenizer) else None,
    )


def load_model(stored: StoredModel, tokenizers: TokenizerPair) -> Model:
    """Return the model of a folder with its stored weights."""
    weights = stored.weights()
    try:
        with _WithoutWeights():
            model = build_for_tokenizers(stored.card.recipe.model, tokenizers)
    except (OverflowError, RuntimeError, TypeError) as error:
        raise ModelFolderError(
            f"{stored.folder} cannot be used: no model can be built from its recipe ({error}). Copy the "
            "folder again from its origin, or train the model again."
        ) from None
    check_weights_fit(model, weights)
    _assign_weights(model, weights)
    return model


class _WithoutWeights(TorchFunctionMode):
    """A mode in which `torch.empty` and `torch.zeros` allocate nothing and random initialisers do nothing.

    Weights get the device "meta": a shape and no memory, because a damaged recipe may ask for more memory
    than the machine has. `with torch.device("meta")` would allocate nothing either, but random initialisers
    and the sines of a position table would first import torch's compiler, which takes a second. This mode
    skips the initialisers and computes position tables, which are not stored, as usual. An initialiser that
    is missing in the list below only costs time: stored weights replace the values that it wrote. A buffer
    that is not stored must not come from `torch.empty` or `torch.zeros`; `_assign_weights` refuses it.
    """

    _INITIALISERS = (
        nn.init.kaiming_uniform_,
        nn.init.normal_,
        nn.init.uniform_,
        Tensor.normal_,
        Tensor.uniform_,
    )

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self._INITIALISERS:
            return args[0] if args else kwargs["tensor"]
        if func in (torch.empty, torch.zeros):
            kwargs = {**kwargs, "device": "meta"}
        return func(*args, **kwargs)


def _assign_weights(model: Model, weights: Mapping[str, Tensor]) -> None:
    """Give every parameter and persistent buffer its stored value. Tied parameters stay tied.

    `weights` has a tied parameter only under its first name, but `load_state_dict` needs all its names. The
    values are copied, because torch aligns its memory and safetensors does not.
    """
    named = model.state_dict(keep_vars=True)
    values: dict[int, Tensor] = {}
    for name, weight in weights.items():
        value = weight.clone()
        values[id(named[name])] = nn.Parameter(value) if isinstance(named[name], nn.Parameter) else value
    model.load_state_dict({name: values[id(tensor)] for name, tensor in named.items()}, assign=True)
    for name, buffer in model.named_buffers():
        if buffer.is_meta:
            raise RuntimeError(
                f"The buffer {name} is not stored, and has no values: while a model is loaded, torch.empty "
                "and torch.zeros allocate nothing. Store it (persistent=True), or make it with torch.full or "
                "torch.arange."
            )
