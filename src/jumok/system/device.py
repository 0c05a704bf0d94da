"""Where a model computes, and in which precision: chosen once, with the reason.

    config = choose_device("auto", "auto")
    config.place(model)            # the model moves its batches there; `model.autocast()` has the precision

Weights, sums of gradients and Adam's state are fp32 on every device. `precision` is the precision of matrix
products (autocast).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from torch import nn

    PlacedModel = TypeVar("PlacedModel", bound=nn.Module)

Device = Literal["auto", "cpu", "cuda", "mps", "xpu"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
DEVICES: tuple[Device, ...] = ("auto", "cpu", "cuda", "mps", "xpu")
PRECISIONS: tuple[Precision, ...] = ("auto", "fp32", "bf16", "fp16")
ACCELERATORS = ("cuda", "xpu", "mps")  # the device "auto" is the first of these that is available
MIN_MINUTES_TO_PROBE = 60.0  # of planned training; a probe takes about two seconds


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """A device as torch names it, such as "cpu" or "cuda:1", the precision of products, and the reason."""

    device: str
    precision: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.device}, {self.precision}" + (f" ({self.reason})" if self.reason else "")

    def place(self, model: PlacedModel) -> PlacedModel:
        """Move the model to the device, set its precision, and return the model."""
        import torch  # start-up

        if any(parameter.device != torch.device(self.device) for parameter in model.parameters()):
            # Parameters are swapped in place, so that tied parameters stay tied on every kind of device.
            before = torch.__future__.get_swap_module_params_on_conversion()
            torch.__future__.set_swap_module_params_on_conversion(True)
            try:
                model.to(self.device)
            finally:
                torch.__future__.set_swap_module_params_on_conversion(before)
        self._use_deterministic_kernels()
        dtypes = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
        model.autocast_dtype = dtypes[self.precision]  # type: ignore[assignment]
        return model

    def _use_deterministic_kernels(self) -> None:
        """On CUDA, choose kernels that give the same bits in every run, if torch has such kernels."""
        if self.device.startswith("cuda"):
            import torch  # start-up

            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def choose_device(
    device: str = "auto", precision: str = "auto", *, index: int | None = None, minutes: float = 0.0
) -> DeviceConfig:
    """Return the device and the precision.

    Raise an error if torch does not find the device, or if the CPU cannot compute in the precision. Whether
    an accelerator supports a named precision is not checked. `index` is the index of the accelerator, if
    there are several. `minutes` is the planned training time. On the CPU, `probe_bf16` is called for the
    precision bf16, and for the precision "auto" if the training is long (`MIN_MINUTES_TO_PROBE`).
    """
    if device not in DEVICES or precision not in PRECISIONS:
        raise UnsupportedError(
            f"Received: device {device!r}, precision {precision!r}. Known devices: {', '.join(DEVICES)}. "
            f"Known precisions: {', '.join(PRECISIONS)}."
        )
    if device == "cpu" and precision == "fp32":
        return DeviceConfig("cpu", "fp32")
    accelerators = [name for name in ACCELERATORS if _is_available(name)]
    reason = ""
    if device == "auto":
        device = accelerators[0] if accelerators else "cpu"
        reason = "the first accelerator" if accelerators else "no accelerator was found"
    if device == "cpu":
        return _cpu_config(precision, minutes, reason)
    if device not in accelerators:
        raise UnsupportedError(
            f"torch finds no {device} on this machine. Received: device {device}; found: "
            f"{', '.join(['cpu', *accelerators])}. Choose one of these, or install a torch that supports "
            f"{device}."
        )
    name = device if index is None or device == "mps" else f"{device}:{index}"
    return _accelerator_config(name, precision, reason)


def _is_available(name: str) -> bool:
    import torch  # start-up

    return bool(getattr(torch, name).is_available())


def _accelerator_config(device: str, precision: str, reason: str) -> DeviceConfig:
    import torch  # start-up

    if precision != "auto":
        return DeviceConfig(device, precision, reason)
    kind = device.partition(":")[0]
    has_bf16 = (kind == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)) or kind == "xpu"
    why = (
        "torch says that the device computes in bf16"
        if has_bf16
        else "torch does not say that the device computes in bf16"
    )
    return DeviceConfig(device, "bf16" if has_bf16 else "fp32", "; ".join(filter(None, [reason, why])))


def _cpu_config(precision: str, minutes: float, reason: str) -> DeviceConfig:
    if precision == "fp16":
        raise UnsupportedError(
            "fp16 is for accelerators: few processors have it. Received: precision fp16 on the CPU. Choose "
            "fp32, or bf16."
        )
    if precision == "fp32" or (precision == "auto" and minutes < MIN_MINUTES_TO_PROBE):
        return DeviceConfig("cpu", "fp32", reason)
    from jumok.system.bf16_probe import probe_bf16  # start-up

    probe = probe_bf16()
    if precision == "bf16" and not probe.works:
        raise UnsupportedError(
            f"This processor cannot be trusted with bf16: {probe.reason}. Received: precision bf16. Choose "
            "fp32. On some machines ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment helps."
        )
    chosen = "bf16" if precision == "bf16" or probe.is_faster else "fp32"
    return DeviceConfig("cpu", chosen, "; ".join(filter(None, [reason, probe.reason])))
