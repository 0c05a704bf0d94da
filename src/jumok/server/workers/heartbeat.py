"""Heartbeats of a worker: every half second, the CPU time that it has used so far.

If heartbeats stop, no Python code of this thread gets to run: the process was stopped, or another thread
keeps Python's global lock (GIL). If they come but the CPU time stands still, the worker waits for something
that never happens. The server notices either within seconds, even on a machine so busy that a healthy batch
takes many times longer than usual.
"""

from __future__ import annotations

import os
import struct
import threading
import time

HEARTBEAT_SECONDS = 0.5
HEARTBEAT = struct.Struct("<d")
"""The CPU time of the process, in seconds."""


def start_heartbeats(pipe: int) -> None:
    """Send heartbeats over a pipe until nobody reads them."""
    threading.Thread(target=_send_heartbeats, args=(pipe,), daemon=True).start()


def _send_heartbeats(pipe: int) -> None:
    try:
        while True:
            os.write(pipe, HEARTBEAT.pack(time.process_time()))
            time.sleep(HEARTBEAT_SECONDS)
    except OSError:  # the server has ended
        return
