"""The bar of rows: where it is shown, with which numbers, and that no job depends on it."""

import io
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import efficient_su2
from qiskit.providers.exceptions import JobTimeoutError

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import CancelledError, OptionError
from qsim_ozaki.provider import progress
from qsim_ozaki.provider.job import OzakiJob
from qsim_ozaki.provider.progress import rows_to_show

SECONDS = 20  # longest wait of a test


class Terminal(io.StringIO):
    def isatty(self):
        return True


def use(monkeypatch, file):
    """Takes ``file`` for stderr; pytest itself changes `sys.stderr` between fixtures and tests."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=file, modules=sys.modules))
    return file


@pytest.fixture
def stderr(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return use(monkeypatch, Terminal())


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)


class SteppedJob:
    """A job whose rows end when the test says so, or at the latest after `SECONDS`."""

    def __init__(self, rows):
        self.rows, self.go = rows, threading.Event()
        self.job = OzakiJob(None, self.work, threading.Lock(), timeout=SECONDS, rows=rows)
        self.job.submit()

    def work(self, check, job_id):
        while not self.go.wait(0.01):
            check()
        return "result"

    def result_in_thread(self):
        pool = ThreadPoolExecutor(1)
        future = pool.submit(self.job.result)
        pool.shutdown(wait=False)
        return future


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def numbers(text):
    """Pairs (rows done, all rows) of all drawings, without repetitions."""
    return list(dict.fromkeys(tuple(map(int, pair)) for pair in re.findall(r"(\d+)/(\d+)", text)))


def plain(text):
    return re.sub(r"\x1b\[[\d;?]*\w", "", text)


def test_a_terminal_shows_the_rows_and_is_clean_afterwards(stderr, at_once):
    stepped = SteppedJob(rows_to_show(None, 40))
    future = stepped.result_in_thread()
    wait_for(lambda: "0/40" in plain(stderr.getvalue()))
    stepped.rows.tell(17, 40)
    wait_for(lambda: "17/40" in plain(stderr.getvalue()))
    stepped.rows.tell(40, 40)
    stepped.go.set()
    assert future.result(SECONDS) == "result"
    assert numbers(plain(stderr.getvalue())) == [(0, 40), (17, 40), (40, 40)]
    assert stderr.getvalue().endswith("\x1b[2K")  # the line is erased
    assert stderr.getvalue().count("\x1b[?25l") == stderr.getvalue().count("\x1b[?25h") == 1  # and the cursor is back


@pytest.mark.parametrize("kind", ["rows", "list", "executor"])
def test_runs_of_rows_lists_and_executors_end_with_all_rows(stderr, at_once, rng, kind):
    circuit = efficient_su2(14, reps=1).measure_all(inplace=False)
    values = rng.uniform(-3, 3, (60, circuit.num_parameters))
    backend = OzakiBackend(seed_simulator=1)
    want = backend.run(circuit, parameter_binds=values, progress=False).result().get_counts()
    assert not stderr.getvalue()
    with ThreadPoolExecutor(2) as pool:
        if kind == "list":
            job = backend.run([circuit.assign_parameters(row) for row in values])
        else:
            job = backend.run(circuit, parameter_binds=values, executor=pool if kind == "executor" else None)
        assert job.result().get_counts() == want
    shown = numbers(plain(stderr.getvalue()))
    assert shown[-1] == (60, 60)
    assert shown == sorted(shown)


def test_a_bar_appears_after_a_second_or_at_once_if_it_is_wanted(stderr):
    before = time.monotonic()
    assert before + 1 <= rows_to_show(None, 2).due <= time.monotonic() + 1
    assert rows_to_show(True, 2).due <= time.monotonic()
    stepped = SteppedJob(rows_to_show(None, 2))
    with pytest.raises(JobTimeoutError):
        stepped.job.result(timeout=0.3)
    assert not stderr.getvalue()
    stepped.go.set()
    assert stepped.job.result() == "result"


def test_no_bar_for_one_row_nor_where_it_cannot_be_seen(stderr, monkeypatch):
    assert rows_to_show(None, 1) is rows_to_show(True, 1) is None
    assert rows_to_show(False, 50) is None
    for other in (io.StringIO(), None, object()):
        use(monkeypatch, other)
        assert rows_to_show(None, 50) is None
    closed = io.StringIO()
    closed.close()
    use(monkeypatch, closed)
    assert rows_to_show(None, 50) is None


def test_true_shows_one_line_where_stderr_is_no_terminal(monkeypatch):
    file = use(monkeypatch, io.StringIO())
    stepped = SteppedJob(rows_to_show(True, 5))
    future = stepped.result_in_thread()
    wait_for(progress._screen.locked)
    stepped.rows.tell(5, 5)
    stepped.go.set()
    assert future.result(SECONDS) == "result"
    (line,) = file.getvalue().splitlines()
    assert line.startswith("rows")
    assert numbers(line) == [(5, 5)]


@pytest.mark.parametrize("fails", ["write", "rich"])
def test_a_bar_that_cannot_be_drawn_costs_no_result(monkeypatch, at_once, stderr, fails):
    def broken(*_):
        raise BrokenPipeError

    if fails == "write":
        monkeypatch.setattr(stderr, "write", broken)
    else:
        monkeypatch.setitem(sys.modules, "rich.progress", None)  # cannot be imported
    stepped = SteppedJob(rows_to_show(None, 5))
    future = stepped.result_in_thread()
    time.sleep(0.3)
    stepped.go.set()
    assert future.result(SECONDS) == "result"
    assert not progress._screen.locked()


def test_one_bar_at_a_time(stderr, at_once):
    first, second = SteppedJob(rows_to_show(None, 11)), SteppedJob(rows_to_show(None, 22))
    results = [first.result_in_thread()]
    wait_for(lambda: "/11" in stderr.getvalue())
    results.append(second.result_in_thread())
    time.sleep(0.3)
    assert "/22" not in stderr.getvalue()
    first.go.set()
    wait_for(lambda: "/22" in stderr.getvalue())  # its turn comes when the first has ended
    second.go.set()
    assert [future.result(SECONDS) for future in results] == ["result", "result"]
    assert not progress._screen.locked()


def test_cancelling_and_ctrl_c_take_the_bar_away(stderr, at_once, monkeypatch):
    stepped = SteppedJob(rows_to_show(None, 11))
    future = stepped.result_in_thread()
    wait_for(lambda: "/11" in stderr.getvalue())
    assert stepped.job.cancel()
    with pytest.raises(CancelledError):
        future.result(SECONDS)
    assert stderr.getvalue().endswith("\x1b[2K")
    stepped = SteppedJob(rows_to_show(None, 22))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress._TerminalView, "draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stepped.job.result()
    assert stepped.job.cancelled()
    assert not progress._screen.locked()


def test_a_callback_of_the_waiting_caller_is_called_as_before_without_a_bar(stderr, at_once):
    stepped = SteppedJob(rows_to_show(None, 11))
    calls = []
    with pytest.raises(JobTimeoutError):
        stepped.job.wait_for_final_state(timeout=0.35, wait=0.1, callback=lambda *_: calls.append(1))
    assert 1 <= len(calls) <= 5
    assert not stderr.getvalue()
    stepped.go.set()


def test_a_notebook_shows_an_output_that_changes(monkeypatch, at_once):
    shown = []

    class Handle:
        def display(self, page):
            shown.append(("display", page))

        def update(self, page):
            shown.append(("update", page))

    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = display
    display.HTML, display.DisplayHandle = str, Handle
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress._NotebookView, "seconds", 0.01)
    stepped = SteppedJob(rows_to_show(None, 40))
    future = stepped.result_in_thread()
    wait_for(lambda: shown)
    stepped.rows.tell(17, 40)
    wait_for(lambda: "17 of 40" in shown[-1][1])
    stepped.rows.tell(40, 40)
    stepped.go.set()
    assert future.result(SECONDS) == "result"
    assert [call for call, _ in shown] == ["display"] + ["update"] * (len(shown) - 1)
    assert re.fullmatch(r'<progress value="40" max="40"></progress> 40 of 40 rows, \d+ s', shown[-1][1])
    ipython.get_ipython = lambda: None  # a script that imports IPython
    use(monkeypatch, io.StringIO())
    assert rows_to_show(None, 40) is None


def test_the_option_of_the_backend_and_the_argument_of_a_run(stderr, at_once, monkeypatch):
    seen = []
    monkeypatch.setattr("qsim_ozaki.provider.backend.rows_to_show", lambda *arguments: seen.append(arguments))
    circuit = QuantumCircuit(16)
    for _ in range(3):
        circuit.h(range(16))
    circuit.measure_all()
    for option in (None, True, False):
        backend = OzakiBackend(progress=option)
        for argument in (None, True, False, np.True_, np.False_):
            backend.run([circuit] * 3, progress=argument).result()
            assert seen.pop() == (option if argument is None else bool(argument), 3)
        backend.run([circuit] * 3, progress=lambda *_: None).result()
        assert not seen


@pytest.mark.parametrize("value", [1, "yes", print])
def test_a_wrong_option_is_refused(value):
    with pytest.raises(OptionError, match=r"progress=.* is not allowed. Use True or False, or None for a bar") as told:
        OzakiBackend(progress=value)
    assert ("run(circuits, progress=function)" in str(told.value)) == (value is print)


def test_small_jobs_import_nothing_for_a_bar():
    code = (
        "import sys; from qiskit import QuantumCircuit; from qsim_ozaki import OzakiBackend; "
        "c = QuantumCircuit(2); c.h(0); c.measure_all(); sys.stderr.isatty = lambda: True; "
        "OzakiBackend().run([c] * 1000, shots=1000).result(); print('rich.progress' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
