"""The job: it runs work in a thread of its own, can be cancelled between steps, and never hides an error.

In: a function that computes a result. Out: the result, or the error that the function raised. It may not see a circuit.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from qiskit.providers import JobStatus, JobV1
from qiskit.providers.exceptions import JobTimeoutError
from qiskit.providers.jobstatus import JOB_FINAL_STATES

from qsim_ozaki.errors import CancelledError, EngineError, TimeLimitError
from qsim_ozaki.provider.progress import Bar, Rows

if TYPE_CHECKING:
    from qiskit.providers import BackendV2

EXIT_SECONDS = 10.0  # longest wait of the interpreter's exit for a job; a step of the largest state takes less
QUEUE_SECONDS = 0.05  # between two looks of a waiting job at its cancellation

_unfinished: weakref.WeakSet[OzakiJob] = weakref.WeakSet()

# work(check, job_id) calls `check` before every step; `check` raises CancelledError after the job was cancelled
JobFunction: TypeAlias = Callable[[Callable[[], None], str], Any]


class OzakiJob(JobV1):  # type: ignore[misc]
    """A run of one or more circuits.

    Args:
        backend: the backend that runs it.
        work: computes the result; called once, in the job's thread.
        turn: lock that the running job holds, so that the jobs of one engine take turns.
        timeout: seconds after submission until the job stops with a `TimeLimitError`; None for no limit.
        rows: its finished rows, for a bar while a thread waits for the job; None for no bar.
    """

    def __init__(
        self,
        backend: BackendV2 | None,
        work: JobFunction,
        turn: threading.Lock,
        timeout: float | None = None,
        rows: Rows | None = None,
    ) -> None:
        super().__init__(backend, str(uuid.uuid4()))
        self._timeout = timeout
        self._deadline = float("inf")
        self._work: JobFunction | None = work
        self._turn = turn
        self._rows = rows
        self._status = JobStatus.INITIALIZING
        self._guard = threading.Lock()  # guards _status: CANCELLED is final
        self._ended = threading.Event()
        self._cancelled = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state of an ended job: status, result or error. A running job cannot leave its process.

        Raises:
            EngineError: the job has not ended.
        """
        if not self._ended.is_set():
            raise EngineError(f"job {self.job_id()} has not ended, so it cannot be pickled. Wait for result() first.")
        not_pickled = {"_turn", "_guard", "_ended", "_thread"}
        return {name: value for name, value in self.__dict__.items() if name not in not_pickled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn, self._guard, self._ended = threading.Lock(), threading.Lock(), threading.Event()
        self._ended.set()
        self._thread = threading.current_thread()  # marks the job as submitted: it cannot run again

    def submit(self, short: bool = False) -> None:
        """Starts the job's thread.

        The thread ends with the job, so that an idle backend has no thread and its process may fork.

        Args:
            short: whether the work takes less time than starting a thread. If no other job runs, such work is done
                before this call returns.

        Raises:
            EngineError: the job was submitted before.
        """
        if self._thread is not None:
            raise EngineError(f"job {self.job_id()} was submitted before. Run the circuits again for a new job.")
        self._status = JobStatus.QUEUED
        if self._timeout is not None:
            self._deadline = time.monotonic() + self._timeout
        if short and self._turn.acquire(blocking=False):
            self._thread = threading.current_thread()
            self._guarded(self._in_turn)
            return
        self._thread = threading.Thread(target=self._run, name=f"qsim_ozaki job {self.job_id()}", daemon=True)
        _unfinished.add(self)
        self._thread.start()

    def status(self) -> JobStatus:
        """Returns INITIALIZING, QUEUED, RUNNING, and at the end DONE, ERROR or CANCELLED."""
        return self._status

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the result; Ctrl-C while waiting cancels the job.

        Args:
            timeout: seconds to wait; None for no limit.

        Raises:
            JobTimeoutError: the job has not ended after ``timeout``; it goes on.
            CancelledError: the job was cancelled.
            Exception: the error of the run, with its own traceback.
        """
        try:
            self.wait_for_final_state(timeout)
        except KeyboardInterrupt:
            self.cancel()
            raise
        if self._status is JobStatus.CANCELLED:
            raise CancelledError(f"job {self.job_id()} was cancelled. Run the circuits again for their result.")
        if self._error is not None:
            raise self._error
        return self._result

    def cancel(self) -> bool:
        """Cancels the job: it has no result and stops before its next step.

        Returns:
            Whether the job is cancelled; False if it had ended before.
        """
        with self._guard:
            if self._status is JobStatus.CANCELLED:
                return True
            if self._status in JOB_FINAL_STATES:
                return False
            self._status = JobStatus.CANCELLED
        self._cancelled = True
        return True

    def wait_for_final_state(
        self,
        timeout: float | None = None,
        wait: float = 5,
        callback: Callable[[str, JobStatus, JobV1], None] | None = None,
    ) -> None:
        """Returns as soon as the job has ended.

        Args:
            timeout: seconds to wait at most.
            wait: seconds between calls of ``callback``.
            callback: called with job id, status and job while the job has not ended.

        Raises:
            JobTimeoutError: the job has not ended after ``timeout``.
        """
        end = None if timeout is None else time.monotonic() + timeout
        bar = Bar(self._rows) if self._rows is not None and callback is None else None
        try:
            while self._status not in JOB_FINAL_STATES:
                left = math.inf if end is None else end - time.monotonic()
                if left <= 0:
                    raise JobTimeoutError(f"job {self.job_id()} has not ended after {timeout} s; it goes on.")
                if callback is not None:
                    callback(self.job_id(), self._status, self)
                    left = min(wait, left)
                elif bar is not None:
                    left = min(bar.refresh(), left)
                self._wait_a_while(left)
        finally:
            if bar is not None:
                bar.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the job has ended and its memory is free; returns whether it has ended."""
        return self._ended.wait(timeout)

    def _wait_a_while(self, seconds: float) -> None:
        """Waits until the thread ends, at most 1 s: a cancelled job is final before its thread ends."""
        self._ended.wait(min(seconds, 1))

    def _check(self) -> None:
        if self._cancelled:
            raise CancelledError(f"job {self.job_id()} was cancelled")
        if time.monotonic() > self._deadline:
            raise TimeLimitError(
                f"job {self.job_id()} was stopped: it took longer than its timeout of {self._timeout} s. "
                f"Give it more time, or less to do: plan(circuit) predicts the seconds."
            )

    def _run(self) -> None:
        self._guarded(self._wait_for_turn)

    def _wait_for_turn(self) -> None:
        while not self._turn.acquire(timeout=QUEUE_SECONDS):
            self._check()
        self._in_turn()

    def _in_turn(self) -> None:
        """Does the work and then releases the turn, which the caller has acquired."""
        try:
            self._enter(JobStatus.RUNNING)
            self._check()
            assert self._work is not None
            self._result = self._work(self._check, self.job_id())
            self._enter(JobStatus.DONE)
        finally:
            self._turn.release()

    def _guarded(self, call: Callable[[], None]) -> None:
        """Runs ``call``; its error becomes the job's error."""
        try:
            call()
        except CancelledError:
            self._enter(JobStatus.CANCELLED)
        except BaseException as error:
            self._error = error
            self._enter(JobStatus.ERROR)
        finally:
            self._work = None  # frees the circuits' memory
            _unfinished.discard(self)
            self._ended.set()

    def _enter(self, status: JobStatus) -> None:
        with self._guard:
            if self._status is not JobStatus.CANCELLED:
                self._status = status
            else:
                self._result = None


@atexit.register
def _stop_unfinished() -> None:
    """Ends running jobs before the interpreter exits: their threads must not run while it shuts down."""
    jobs = list(_unfinished)
    for job in jobs:
        job.cancel()
    for job in jobs:
        job.wait(EXIT_SECONDS)


# A forked child has none of its parent's threads, so none of its jobs to wait for.
os.register_at_fork(after_in_child=_unfinished.clear)
