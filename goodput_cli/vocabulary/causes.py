"""Why an attempt died: the causes, in nine groups. One row each says all there is to say of it.

The order of the groups is the order in which they are believed where nothing else decides (docs/causes.md). A new cause
is a row here, and a row of evidence in `events/text/causes.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

CauseGroup = Literal["hardware", "scheduler", "operator", "memory", "storage", "network", "data", "software", "unknown"]
GROUPS: tuple[CauseGroup, ...] = get_args(CauseGroup)
"""In the order in which they are believed."""

Role = Literal["root", "exit", "echo", "teardown", "context"]
"""`root` states a mechanism; `exit` how a process ended; `echo` that somebody else is gone; `teardown` is what
processes say while they are being killed; `context` ends nothing."""
ROLES: tuple[Role, ...] = get_args(Role)

Certainty = Literal["said", "likely"]
CERTAINTIES: tuple[Certainty, ...] = get_args(Certainty)

UNKNOWN_CAUSE = "unknown"
"""Nobody says why."""
KILLED = "killed"
PEER_LOST = "peer_lost"
"""What an echo says of the others; it is no cause."""


@dataclass(frozen=True)
class Cause:
    """All that is declared of a cause."""

    code: str
    """Its name in every answer, option and document."""
    group: CauseGroup
    says: str
    """What says so, for people."""
    advice: str
    """What to do about it, in a sentence."""


_ROWS = (
    Cause("gpu_memory", "hardware", "Xid 48, 64, 94, 95, 140, 171 or 172 in the kernel log; `uncorrectable ECC error`",
          "drain the host and reset the GPU; replace it if it comes back"),
    Cause("gpu_fault", "hardware", "Xid 46, 61, 62, 79, 109, 110, 119, 120, 143, 158, 167 or 169; a GPU that "
          "fell off the bus; a GSP timeout",
          "drain the host and power it off and on"),
    Cause("gpu_link", "hardware", "Xid 74, 136, or 144 to 150 with `Fatal`; `uncorrectable NVLink error`; a fatal "
          "NVSwitch error", "drain the host and test its links"),
    Cause("node_failure", "hardware", "NODE_FAIL of sacct; `DUE TO NODE FAILURE`; `Node failure on`; NodeNotReady of a "
          "node of the job", "ask the operators about the node; keep spare nodes"),
    Cause("network", "network", "NCCL's `Got completion ... with status`, `ibv_modify_qp failed`; a link that goes "
          "down in the kernel log", "look at port and cable of the named host and of its peer"),
    Cause("collective_timeout", "network", "a watchdog or a barrier that ran out of time, where no line says why "
          "somebody was missing", "look at the silent ranks; turn the flight recorder on"),
    Cause("disk_full", "storage", "`No space left on device`, `Disk quota exceeded`",
          "make room; keep fewer checkpoints"),
    Cause("storage_error", "storage", "`Input/output error`, `Stale file handle`, a failed stream writer, `nfs: server "
          "... not responding`", "look at the file server at that time"),
    Cause("checkpoint_unreadable", "storage", "a stream reader that fails, missing keys, an exception of a reader of "
          "checkpoints", "restore the one before; write to a temporary name, then rename"),
    Cause("device_oom", "memory", "`CUDA out of memory`, `RESOURCE_EXHAUSTED: Out of memory`",
          "use a smaller batch or more recomputation; look at the named rank"),
    Cause("host_oom", "memory", "a kill as memory ran out, by the kernel, a cgroup, Slurm, Kubernetes or Ray",
          "use fewer loader workers or ask for more memory"),
    Cause("shared_memory", "memory", "a loader's worker `killed by signal: Bus error`; /dev/shm is full",
          "raise the limit of /dev/shm"),
    Cause("python_error", "software", "any other unhandled exception: its type and message", "read the traceback"),
    Cause("native_crash", "software", "SIGSEGV, SIGABRT, SIGBUS, SIGFPE or SIGILL; C++ `terminate`",
          "keep the core and look at the library named"),
    Cause("device_error", "software", "a device-side assert, an illegal access, Xid 13, 31, 32, 69 or 137",
          "an index out of range is the usual reason; repeat with CUDA_LAUNCH_BLOCKING=1"),
    Cause("environment", "software", "an import that fails, a missing executable, an image that cannot be pulled, a "
          "mount that fails", "compare image and machine with the last start that worked"),
    Cause("data_loader", "data", "a loader's worker that exited or ran out of time, not killed from outside",
          "repeat with the same data in one process"),
    Cause("not_finite", "data", "`found NaN in local grad norm`, `Unexpected result nan`",
          "the same step again is data or program, the same host again is hardware"),
    Cause("time_limit", "scheduler", "`DUE TO TIME LIMIT`, TIMEOUT, DeadlineExceeded",
          "ask for longer, or end by yourself with a save"),
    Cause("preempted", "scheduler", "`DUE TO PREEMPTION`, PREEMPTED, `Preempted by`, a notice of preemption",
          "save more often; see `goodput advise`"),
    Cause("maintenance", "scheduler", "a host's maintenance event that ended it", "save on notice"),
    Cause("evicted", "scheduler", "Evicted, a node under pressure, taints", "set requests and limits"),
    Cause("cancelled", "operator", "CANCELLED by a user, `JOB REQUEUE`, Ctrl-C",
          "if it was planned, record it as a planned end"),
    Cause(KILLED, "unknown", "SIGKILL or SIGTERM, and no line says by whom", "read the kernel log of that host"),
    Cause(UNKNOWN_CAUSE, "unknown", "no line", "log the output of the processes and of the scheduler"),
)  # fmt: skip
CAUSES: Mapping[str, Cause] = {row.code: row for row in _ROWS}
"""By code."""
OUT_OF_MEMORY = ("device_oom", "host_oom")
"""What thresholds call `oom`."""


def group_of(code: str) -> CauseGroup:
    """The group of a cause; of what is none: that of `unknown`."""
    row = CAUSES.get(code)
    return "unknown" if row is None else row.group
