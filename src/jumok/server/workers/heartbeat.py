"""Heartbeats of a worker: every half second, the CPU time that it has used so far.

A thread of the worker sends the heartbeats. If they stop, the thread cannot run: the process was stopped, or
another thread holds Python's global lock (GIL). If heartbeats arrive but the CPU time does not grow during a
batch, the worker waits for something that never happens. The server notices both cases within seconds. A
worker that is only slow, because the machine is busy, still sends heartbeats with growing CPU times.
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
