"""Caches in memory and in files: what they hold, what they drop, and which thread's value stays."""

import json
import threading

import pytest

from qsim_ozaki.cache import DeviceRecords, LruCache, write_atomically


def test_a_cache_is_bounded_by_bytes():
    cache = LruCache(10, 3)
    cache.add("a", 1, 4)
    cache.add("b", 2, 4)
    cache.add("c", 3, 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), cache.num_bytes) == (None, 2, 3, 8)
    cache.add("d", 4, 10)
    assert (cache.get("b"), cache.get("c"), cache.get("d"), cache.num_bytes) == (None, None, 4, 10)


def test_a_cache_is_bounded_by_entries():
    cache = LruCache(10, 3)
    for number in range(5):
        cache.add(number, str(number), number % 2)
    assert [cache.get(number) for number in range(5)] == [None, None, "2", "3", "4"]
    assert (len(cache), cache.num_bytes) == (3, 1)


def test_get_makes_an_entry_the_most_recently_used_one():
    cache = LruCache(100, 2)
    cache.add("a", 1, 1)
    cache.add("b", 2, 1)
    assert cache.get("a") == 1
    cache.add("c", 3, 1)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_the_first_value_of_a_key_stays():
    cache = LruCache(10, 3)
    first, second = object(), object()
    assert cache.add("a", first, 4) is first
    assert cache.add("a", second, 6) is first
    assert cache.get("a") is first
    assert (len(cache), cache.num_bytes) == (1, 4)


def test_all_threads_get_the_value_of_the_first():
    cache, together, values = LruCache(1 << 20, 64), threading.Barrier(8), []

    def work():
        together.wait()
        values.extend((number, cache.add(number, object(), 1)) for number in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) == 400
    assert all(cache.get(number) is value for number, value in values)


@pytest.mark.parametrize(("max_bytes", "max_entries"), [(10, 3), (10, 0), (0, 0)])
def test_an_entry_that_does_not_fit_is_returned_and_not_stored(max_bytes, max_entries):
    cache = LruCache(max_bytes, max_entries)
    cache.add("small", 1, 0)
    before = len(cache)
    assert before == (max_entries > 0)
    assert cache.add("large", 2, 11) == 2
    assert cache.get("large") is None
    assert len(cache) == before  # it has driven out no other


def test_a_file_is_written_whole_into_a_new_folder(tmp_path):
    path = tmp_path / "folder" / "file"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    write_atomically(tmp_path / "file" / "below", b"data")
    assert (tmp_path / "file").read_bytes() == b""


def test_a_device_is_measured_once_and_again_by_another_version(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    measured = []

    def measure():
        measured.append(1)
        return {"speed": 2.5 * len(measured)}

    records = DeviceRecords("devices.json")
    for store in (records, records, DeviceRecords("devices.json")):
        assert store.record("cpu", {"speed"}, measure) == {"speed": 2.5}
    assert DeviceRecords("devices.json").record("gpu", {"speed"}, measure) == {"speed": 5.0}
    (file,) = tmp_path.rglob("devices.json")
    assert json.loads(file.read_text()) == {"cpu": {"speed": 2.5}, "gpu": {"speed": 5.0}}
    file.write_text(json.dumps({"cpu": {"pace": 1}}))
    assert DeviceRecords("devices.json").record("cpu", {"speed"}, measure) == {"speed": 7.5}
    file.write_text("no JSON")
    assert DeviceRecords("devices.json").record("cpu", {"speed"}, measure) == {"speed": 10.0}


def test_a_stored_record_takes_the_place_of_another_and_leaves_others(tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    records = DeviceRecords("devices.json")
    assert records.stored("cpu", {"speed"}) is None
    records.store("gpu", {"speed": 1.0})
    records.store("cpu", {"speed": 2.0})
    records.store("cpu", {"speed": 3.0})
    for store in (records, DeviceRecords("devices.json")):
        assert store.stored("cpu", {"speed"}) == {"speed": 3.0}
        assert store.stored("gpu", {"speed"}) == {"speed": 1.0}
    assert DeviceRecords("devices.json").stored("cpu", {"pace"}) is None  # of another version


def test_a_device_is_measured_once_where_no_file_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "file" / name)
    measured = []
    records = DeviceRecords("devices.json")
    for _ in range(2):
        records.record("cpu", {"speed"}, lambda: measured.append(1) or {"speed": 1.0})
    assert len(measured) == 1
