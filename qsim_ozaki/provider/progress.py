"""Progress bars: the finished rows of a job, drawn by the thread that waits for its result.

In: numbers of rows, from the job's thread. Out: a bar on stderr or in a notebook, while someone waits. It may not stop
or fail a job, and it imports nothing before a bar is shown.
"""

from __future__ import annotations

import html
import math
import sys
import threading
import time
from dataclasses import dataclass
from typing import Protocol

DELAY_SECONDS = 1.0  # a shorter job has no bar, which would only flicker

_screen = threading.Lock()  # held by the bar that is shown: two would write over each other


@dataclass(slots=True)
class Rows:
    """The finished rows of a job.

    Attributes:
        total: number of all rows.
        due: time of the clock `time.monotonic` at which a bar may appear.
        done: number of finished rows.
    """

    total: int
    due: float
    done: int = 0

    def tell(self, done: int, total: int) -> None:
        """Notes the number of finished rows; the job's thread calls this."""
        self.done = done


def rows_to_show(shown: bool | None, total: int) -> Rows | None:
    """Returns the rows of a new job if a bar may show them, else None.

    Args:
        shown: True for a bar at once; False for none; None for one after `DELAY_SECONDS`, if stderr is a terminal or
            this is a notebook.
        total: number of rows; a single one has no bar.
    """
    if total < 2 or shown is False or (shown is None and not (_is_terminal() or _is_notebook())):
        return None
    return Rows(total, time.monotonic() + (0 if shown else DELAY_SECONDS))


class Bar:
    """The bar that a waiting thread draws.

    Args:
        rows: the rows of the job that it waits for.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._view: _View | None = None
        self._is_broken = False

    def refresh(self) -> float:
        """Draws the bar if it is due; returns the seconds until it should be drawn again."""
        if self._is_broken:
            return math.inf
        left = self._rows.due - time.monotonic()
        if left > 0:
            return left
        if self._view is None and not _screen.acquire(blocking=False):
            return _TerminalView.seconds
        try:
            if self._view is None:
                self._view = _BrokenView()  # from here on `close` gives the screen back, whatever is raised
                self._view = _NotebookView(self._rows.total) if _is_notebook() else _TerminalView(self._rows.total)
            self._view.draw(self._rows.done)
        except Exception:  # a closed terminal, or a display that fails, may not cost the user the result
            self._is_broken = True
            return math.inf
        return self._view.seconds

    def close(self) -> None:
        """Takes the bar away, if it was shown."""
        view, self._view = self._view, None
        if view is None:
            return
        try:
            view.close(self._rows.done)
        except Exception:  # as in `refresh`
            self._is_broken = True
        finally:
            _screen.release()


class _View(Protocol):
    """One way to draw a bar.

    Attributes:
        seconds: time between two drawings.
    """

    seconds: float

    def draw(self, done: int) -> None:
        """Draws the bar with ``done`` finished rows."""

    def close(self, done: int) -> None:
        """Ends the drawing."""


class _BrokenView:
    """A view that could not be made."""

    seconds = math.inf

    def draw(self, done: int) -> None:
        """Draws nothing."""

    def close(self, done: int) -> None:
        """Leaves everything as it is."""


class _TerminalView:
    """A line on stderr, which is erased at the end; where stderr is no terminal, the line at the end alone."""

    seconds = 0.1

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        class ErrorConsole(Console):
            """Rich's console; the class itself would end the process where a pipe is closed."""

            def on_broken_pipe(self) -> None:
                """Raises the error again."""
                raise BrokenPipeError

        console = ErrorConsole(file=sys.stderr)
        columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        # Without a thread of its own, and without a hold on stdout and stderr, which other threads may be using.
        self._progress = Progress(
            *columns,
            console=console,
            transient=console.is_terminal,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("rows", total=total)
        self._progress.start()

    def draw(self, done: int) -> None:
        """Draws the line."""
        self._progress.update(self._task, completed=done, refresh=True)

    def close(self, done: int) -> None:
        """Erases the line."""
        self._progress.update(self._task, completed=done)
        self._progress.stop()


class _NotebookView:
    """An output of the cell, which is changed in place."""

    seconds = 0.5

    def __init__(self, total: int) -> None:
        from IPython.display import DisplayHandle

        self._total = total
        self._start = time.monotonic()
        self._handle = DisplayHandle()
        self._is_shown = False

    def draw(self, done: int) -> None:
        """Changes the output."""
        from IPython.display import HTML

        seconds = time.monotonic() - self._start
        text = html.escape(f"{done} of {self._total} rows, {seconds:.0f} s")
        page = HTML(f'<progress value="{done}" max="{self._total}"></progress> {text}')
        show = self._handle.update if self._is_shown else self._handle.display
        self._is_shown = True
        show(page)

    def close(self, done: int) -> None:
        """Leaves the last numbers."""
        self.draw(done)


def _is_terminal() -> bool:
    """Whether stderr is a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except (AttributeError, ValueError):  # another object in its place, or closed
        return False


def _is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported for the answer."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
