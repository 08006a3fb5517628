"""Engines that runs share: one for the same options, in one process, whichever threads ask."""

import os
import threading

import pytest

from qsim_ozaki.engines import SharedEngines, select
from qsim_ozaki.engines import base as engines
from qsim_ozaki.engines.cpu.engine import CpuEngine
from qsim_ozaki.errors import EngineError


def test_the_same_options_share_an_engine_and_its_turn():
    shared = SharedEngines()
    engine, turn = shared.shared("cpu", 1, 0)
    again = shared.shared("cpu", 1, 0)
    assert (again[0] is engine, again[1] is turn) == (True, True)
    for other in (shared.shared("cpu", 2, 0), shared.shared("cpu", 1, 1 << 30), SharedEngines().shared("cpu", 1, 0)):
        assert other[0] is not engine
        assert other[1] is not turn


def test_a_forked_process_makes_its_own_engine(monkeypatch):
    shared = SharedEngines()
    engine, turn = shared.shared("cpu", 1, 0)
    turn.acquire()  # by a thread that the fork does not have
    parent = os.getpid()
    monkeypatch.setattr(engines.os, "getpid", lambda: parent + 1)
    forked, free = shared.shared("cpu", 1, 0)
    assert forked is not engine
    assert free.acquire(blocking=False)


def test_threads_that_ask_at_once_share_an_engine(monkeypatch):
    shared, together, pairs = SharedEngines(), threading.Barrier(4), []
    monkeypatch.setattr(engines, "select", lambda *args, **options: (together.wait(5), CpuEngine(1, 0))[1])

    def work():
        pairs.append(shared.shared("cpu", 1, 0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pairs) == 4
    assert len({(id(engine), id(turn)) for engine, turn in pairs}) == 1


def test_auto_is_the_cpu_engine():
    assert isinstance(select("auto"), CpuEngine)
    with pytest.raises(EngineError, match="'abacus' is not known; available: auto, cpu, cuda"):
        SharedEngines().shared("abacus", 0, 0)
