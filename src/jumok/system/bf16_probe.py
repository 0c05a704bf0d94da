"""Find out in a child process whether this processor multiplies matrices in bf16, faster than in fp32.

Flags are not reliable. A processor may list AMX, the kernel may grant it, torch may report it, and the first
product may still be an illegal instruction (in some virtual machines), which kills the computing process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass

from jumok.system.processes import python_command

MIN_SPEED_UP = 1.3  # of matrix products; the rest of an update does not get faster
MAX_ERROR = 0.02  # the largest error of a matrix product, divided by its largest element
TIMEOUT_SECONDS = 60.0  # of the child, which usually takes two seconds
PROBE_CODE = """
import json, time, torch
torch.set_num_threads(1)
def rate(kind, n=768, seconds=0.25):
    left, right = torch.randn(n, n).to(kind), torch.randn(n, n).to(kind)
    left @ right
    started, products = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        left @ right
        products += 1
    return products / (time.perf_counter() - started)
rows = torch.randn(64, 64)
exact = rows @ rows
error = float(((rows.bfloat16() @ rows.bfloat16()).float() - exact).abs().max() / exact.abs().max())
print(json.dumps({"speed_up": rate(torch.bfloat16) / rate(torch.float32), "error": error}))
"""


@dataclass(frozen=True, slots=True)
class Bf16Probe:
    """The result of the child process.

    `works` says whether products in bf16 are correct. `speed_up` is their speed divided by the speed of
    products in fp32; if they are not correct, it is 0. `reason` states the result for the user.
    """

    works: bool
    speed_up: float
    reason: str

    @property
    def is_faster(self) -> bool:
        """Whether bf16 works and is at least `MIN_SPEED_UP` times as fast as fp32."""
        return self.works and self.speed_up >= MIN_SPEED_UP


def probe_bf16(code: str = PROBE_CODE) -> Bf16Probe:
    """Multiply matrices in bf16 and fp32 in a child process that runs `code`, and return the result."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        child = subprocess.run(
            python_command(code),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Bf16Probe(False, 0.0, f"the test of bf16 took more than {TIMEOUT_SECONDS:.0f} s")
    if child.returncode < 0:
        return Bf16Probe(
            False, 0.0, f"a process that computes in bf16 dies of {signal.Signals(-child.returncode).name}"
        )
    if child.returncode:
        last_line = child.stderr.strip().rpartition("\n")[2]
        return Bf16Probe(False, 0.0, f"the test of bf16 fails ({last_line})")
    result = json.loads(child.stdout)
    if not result["error"] <= MAX_ERROR:
        return Bf16Probe(False, 0.0, f"products in bf16 are wrong by {result['error']:.0%}")
    speed_up = float(result["speed_up"])
    return Bf16Probe(True, speed_up, f"products in bf16 are {speed_up:.1f} × as fast as in fp32")
