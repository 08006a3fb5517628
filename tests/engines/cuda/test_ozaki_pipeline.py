"""Chunks of an emulated block on streams: what must come before what, on streams that know what they wait for."""

from types import SimpleNamespace

import pytest

from qsim_ozaki.engines.cuda.device import kernels
from qsim_ozaki.engines.cuda.ozaki.pipeline import BARRIER_BYTES, SETS, ChunkStreams, Pipeline, Wgmma, pipeline

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
@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_every_part_waits_for_what_it_reads_and_for_what_it_overwrites(streams, chunks, with_priorities):
    device = Device(with_priorities)
    streams_of_chunks = ChunkStreams(device.cupy, streams)
    assert len(set(map(id, streams_of_chunks.streams))) == (0 if streams == 1 else streams)
    for turn in range(2):  # events are used again
        earlier, device.before = ("caller", turn), {}
        device.caller.done.add(earlier)
        streams_of_chunks.run(chunks, tuple(device.part((turn, name)) for name in PARTS))
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


def test_products_run_beside_the_next_residues_and_the_last_write_back():
    device = Device()
    streams_of_chunks = ChunkStreams(device.cupy, 3)
    streams_of_chunks.run(4, tuple(map(device.part, PARTS)))
    assert ("products", 1) not in device.before["residues", 2]
    assert ("residues", 2) not in device.before["products", 1]
    assert ("write_back", 0) not in device.before["products", 1]
    assert ("products", 1) not in device.before["write_back", 0]
    assert streams_of_chunks.streams[1].priority < streams_of_chunks.streams[0].priority  # lower comes first


def test_a_product_is_built_for_the_depth_it_has():
    held, streamed = Wgmma.HELD, Wgmma.STREAMED
    assert [held.instance(depth) for depth in (1, 2, 4, 8)] == [
        {"DEPTH": "1", "CLUSTER": "1", "STAGES": "8"},
        {"DEPTH": "2", "CLUSTER": "2", "STAGES": "8"},
        {"DEPTH": "4", "CLUSTER": "2", "STAGES": "8"},
        {"DEPTH": "8", "CLUSTER": "2", "STAGES": "6"},
    ]
    assert held.blocks(4096, 8, 132) == 128
    assert held.blocks(4096, 4, 132) == 132
    assert held.blocks(8, 8, 132) == 8
    assert streamed.instance(16) == {"CLUSTER": "2", "STAGES": "4"}
    assert streamed.blocks(4096, 8, 133) == 132
    compiled = [{**instance, "WHOLE": ""} for instance in kernels.KERNELS["ozaki_held"].instances]
    assert compiled == [held.instance(depth) | {"WHOLE": ""} for depth in (1, 2, 4, 8)]  # what is tested is what runs


@pytest.mark.parametrize("form", Wgmma)
def test_a_product_fits_a_multiprocessor(form):
    for depth in (1, 2, 4, 8) if form is Wgmma.HELD else (1, 2, 4, 8, 16, 32):
        stages = form.stages(depth)
        assert stages >= 4
        assert form.shared_bytes(depth) <= 227 << 10
        assert 8 * (2 * stages + 1) <= BARRIER_BYTES - 1024


@pytest.mark.parametrize(
    ("down", "across", "planes", "processors"), [(2, 8, 6, 132), (4, 1, 3, 132), (8, 32, 32, 132), (1, 5, 4, 3)]
)
def test_blocks_that_hold_a_matrix_share_the_tiles_and_change_it_seldom(down, across, planes, processors):
    """The kernel's arithmetic: every tile of 128 columns once, clusters in step, a block's row always the same."""
    blocks = Wgmma.HELD.blocks(planes * across * down, down, processors)
    groups, columns, seen, changes = blocks // down, 2 * planes * across, [], []
    assert blocks % down == 0
    for block in range(blocks):
        group, row = block // down, block % down
        tiles = range(group * columns // groups, (group + 1) * columns // groups)
        seen += [(tile, row) for tile in tiles]
        changes.append(len({tile // (2 * across) for tile in tiles}))
    assert sorted(seen) == [(tile, row) for tile in range(columns) for row in range(down)]
    assert max(changes) <= -(-planes // groups) + 1


def test_a_pipeline_names_its_kernels():
    def names(how, depth):
        return [name for name, _ in how.kernels(depth, 9, {"REAL": "double"})]

    products = ["ozaki_product", "ozaki_wgmma"]
    held = names(Pipeline(8, 8, wgmma=Wgmma.HELD), 8)
    assert held == ["ozaki_matrix", "ozaki_encode", "ozaki_product", "ozaki_held", "ozaki_finish"]
    assert names(Pipeline(8, 8), 8) == ["ozaki_matrix", "ozaki_encode", *products, "ozaki_finish"]
    two = ["ozaki_clear", "ozaki_scale", "ozaki_residues"]
    assert names(Pipeline(), 8) == ["ozaki_matrix", *two, *products, "ozaki_reconstruct", "ozaki_commit"]


def test_the_way_of_a_block_is_what_was_fastest():
    for k in (7, 8, 9):
        for count in (8, 9, 10, 17):
            how = pipeline(k, count)
            assert (how.wgmma, how.columns) == (Wgmma.HELD, 8 if k == 9 else 16)
            assert how.chunk_amps == (1 << 25 if count <= 9 else 1 << 24)
    assert (pipeline(10, 9).wgmma, pipeline(10, 9).columns, pipeline(10, 9).encode_depth) == (Wgmma.HELD, 8, 8)
    assert (pipeline(10, 14).wgmma, pipeline(10, 14).columns, pipeline(10, 14).encode_depth) == (Wgmma.HELD, 0, 2)
    for k in (11, 12, 13):
        assert (pipeline(k, 9).wgmma, pipeline(k, 16).columns) == (Wgmma.STREAMED, 0)
    # two sets of the operand and the product's residues: workspaces of a longer chunk are no problem with few moduli
    assert SETS * 4 * 9 * pipeline(8, 9).chunk_amps < 1.2 * SETS * 4 * 16 * pipeline(8, 16).chunk_amps
