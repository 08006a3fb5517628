"""A simulator's process, as the benchmark that sends it orders sees it.

In: orders. Out: answers, or the reason of a failure. It may not see a circuit, nor judge a time.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

Answer: TypeAlias = dict[str, Any]

START_SECONDS = 120.0  # longest start of a process: it imports and, for this package's engine, calibrates


def machine_busy_seconds() -> float:
    """CPU seconds that this machine was busy since it started, stolen seconds included; 0 if they are unknown."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as lines:
            fields = [int(field) for field in lines.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0.0
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Process:
    """A simulator's process, which takes orders and gives answers."""

    def __init__(self, simulator: str, precision: str, threads: int, environment: Mapping[str, str]) -> None:
        self.simulator = simulator
        self.precision = precision
        self.threads = threads
        self.environment = environment
        self.device: dict[str, Any] = {}
        self.failure = ""
        self.child: subprocess.Popen[str] | None = None

    def begin(self) -> bool:
        """Starts the process if it does not run yet; returns whether it runs."""
        if self.child is not None:
            return True
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        many = {name: str(self.threads) for name in names}
        command = [
            sys.executable,
            "-P",
            "-m",
            "qsim_ozaki.bench.worker",
            self.simulator,
            self.precision,
            str(self.threads),
        ]
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **many, "QISKIT_PARALLEL": "FALSE", **self.environment},
        )
        hello = self._answer(START_SECONDS)
        self.failure = hello.get("failed", "")
        self.device = hello.get("device", {})
        if self.failure:
            self.end()
        return not self.failure

    def ask(self, order: str, seconds: float, **arguments: object) -> Answer:
        """Returns the answer to ``order``; ends the process if it takes longer than ``seconds``."""
        if self.child is None:
            return {"failed": self.failure or "its process has ended"}
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps({"order": order, **arguments}) + "\n")
            self.child.stdin.flush()
        except OSError:
            self.end()
            return {"failed": "its process has ended"}
        return self._answer(seconds)

    def _answer(self, seconds: float) -> Answer:
        assert self.child is not None
        assert self.child.stdout is not None
        if not select.select([self.child.stdout], [], [], seconds)[0]:
            self.end()
            return {"failed": f"no answer in {seconds:.3g} s"}
        line = self.child.stdout.readline()
        if not line:
            self.end()
            return {"failed": "its process has ended"}
        answer: Answer = json.loads(line)
        return answer

    def end(self) -> None:
        """Ends the process."""
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None
