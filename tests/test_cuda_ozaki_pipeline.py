"""Chunks of an emulated block on streams: what must come before what, on streams that know what they wait for."""

from types import SimpleNamespace

import pytest

from qsim_ozaki.cuda_ozaki_pipeline import SETS, Lanes, Wgmma

PARTS = ("residues", "products", "write_back")


class Device:
    """Streams as sets of what has happened before their end."""

    def __init__(self, with_priorities=True):
        self.order, self.before = [], {}
        self.caller = self.current = SimpleNamespace(done=set(), wait_event=lambda event: self.wait(self.caller, event))
        device = self

        class Stream:
            def __init__(self, non_blocking, **more):
                if more and not with_priorities:
                    raise TypeError(more)
                assert non_blocking  # else it waits for the caller's stream at every launch
                self.done, self.priority = set(), more.get("priority", 0)

            def __enter__(self):
                self.outer, device.current = device.current, self

            def __exit__(self, *_):
                device.current = self.outer

            def wait_event(self, event):
                device.wait(self, event)

        class Event:
            def __init__(self, disable_timing):
                self.done = None

            def record(self, stream):
                self.done = set(stream.done)

        self.cupy = SimpleNamespace(
            cuda=SimpleNamespace(Stream=Stream, Event=Event, get_current_stream=lambda: self.current)
        )

    @staticmethod
    def wait(stream, event):
        assert event.done is not None, "an event that nobody recorded"
        stream.done |= event.done

    def part(self, name):
        def launch(number):
            me = (name, number)
            self.before[me] = set(self.current.done)
            self.current.done.add(me)
            self.order.append(me)

        return launch


@pytest.mark.parametrize("with_priorities", [True, False])
@pytest.mark.parametrize("streams", [1, 2, 3])
@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_every_part_waits_for_what_it_reads_and_for_what_it_overwrites(streams, chunks, with_priorities):
    device = Device(with_priorities)
    lanes = Lanes(device.cupy, streams)
    assert len(set(map(id, lanes.streams))) == streams
    for turn in range(2):  # events are used again
        earlier, device.before = ("caller", turn), {}
        device.caller.done.add(earlier)
        lanes.run(chunks, tuple(device.part((turn, name)) for name in PARTS))
        every = {((turn, name), number) for name in PARTS for number in range(chunks)}
        assert set(device.before) == every
        assert every <= device.caller.done
        for ((_, name), number), done in device.before.items():
            assert earlier in done
            if name != "residues":
                assert ((turn, PARTS[PARTS.index(name) - 1]), number) in done
            if number >= SETS:
                assert ((turn, "write_back"), number - SETS) in done
    assert device.current is device.caller


@pytest.mark.parametrize("streams", [2, 3])
def test_products_run_beside_the_next_residues_and_the_last_write_back(streams):
    device = Device()
    lanes = Lanes(device.cupy, streams)
    lanes.run(4, tuple(map(device.part, PARTS)))
    assert ("products", 1) not in device.before["residues", 2]
    assert ("residues", 2) not in device.before["products", 1]
    assert ("write_back", 0) not in device.before["products", 1]
    assert ("products", 1) not in device.before["write_back", 0]
    assert lanes.streams[1].priority < lanes.streams[0].priority  # lower comes first


def test_a_product_is_built_for_the_depth_it_has():
    how = Wgmma(stages=3, lead=2, cluster=4, copier=0)
    assert how.instance(8) == {"STAGES": "3", "LEAD": "2", "CLUSTER": "4", "COPIER": "0"}
    assert how.instance(2) == {"STAGES": "3", "LEAD": "2", "CLUSTER": "2", "COPIER": "0"}
    assert how.instance(1) == {"STAGES": "3", "LEAD": "0", "CLUSTER": "1", "COPIER": "0"}
    assert how.blocks(4096, 8, 132) == 128
    assert how.blocks(4096, 2, 132) == 132
    assert how.blocks(10, 2, 132) == 10
    assert how.threads == 256
    assert Wgmma().threads == 288
    for stages in (3, 4):
        assert Wgmma(stages).shared_bytes <= 227 << 10
    # what is left beside three stages holds a tile of ozaki_residues and what the system takes of either block
    assert Wgmma(3).shared_bytes + 33024 + 2048 <= 228 << 10
    for depth in (2, 4, 8, 16):  # barriers in turn tell two tiles apart
        for each in (Wgmma(4, 2), how):
            lead = int(each.instance(depth)["LEAD"])
            assert 2 * depth + lead > each.stages
            assert lead < each.stages
