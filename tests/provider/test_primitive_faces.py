"""Native primitives look like Qiskit's: properties, seeds, and data without rows, bits or registers."""

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Parameter
from qiskit.primitives import BackendEstimatorV2, BackendSamplerV2, StatevectorSampler
from support.bell import bell

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2
from qsim_ozaki.errors import OptionError


def test_primitives_show_what_they_were_given():
    backend = OzakiBackend()
    sampler, estimator = SamplerV2(backend, default_shots=50, seed=3), EstimatorV2(default_precision=0.1, seed=4)
    assert (sampler.backend, sampler.default_shots, sampler.seed) == (backend, 50, 3)
    assert (estimator.default_precision, estimator.seed) == (0.1, 4)
    assert (SamplerV2().default_shots, EstimatorV2().default_precision, SamplerV2().seed) == (1024, 0, None)
    assert SamplerV2(OzakiBackend(shots=77)).default_shots == 77
    data = SamplerV2(OzakiBackend(shots=77)).run([bell()]).result()[0].data
    assert next(iter(data.values())).num_shots == 77


def test_a_generator_as_seed_gives_every_run_another_sample():
    circuit = QuantumCircuit(1)
    circuit.ry(1.2, 0)
    runs = []
    for _ in range(2):
        sampler = SamplerV2(seed=np.random.default_rng(5))
        estimator = EstimatorV2(seed=np.random.default_rng(6))
        counts = [sampler.run([circuit.measure_all(inplace=False)]).result()[0].data.meas.get_counts() for _ in "ab"]
        evs = [float(estimator.run([(circuit, "Z")], precision=0.01).result()[0].data.evs) for _ in "ab"]
        assert counts[0] != counts[1]
        assert evs[0] != evs[1]
        runs.append((counts, evs))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("primitive", [SamplerV2, EstimatorV2])
@pytest.mark.parametrize("seed", [-1, 1.5, True, "7", np.random.RandomState(1)])
def test_a_seed_is_refused_by_its_own_name(primitive, seed):
    with pytest.raises(OptionError, match=r"^seed="):
        primitive(seed=seed)


@pytest.mark.parametrize("shots", [0, -1, 1.5, True, "7", (1 << 53) + 1])
def test_default_shots_are_refused_by_their_own_name(shots):
    with pytest.raises(
        OptionError, match=rf"^default_shots={shots!r} is not allowed\. .* or None for the backend's shots"
    ):
        SamplerV2(default_shots=shots)


@pytest.mark.parametrize("precision", [-0.1, np.nan, np.inf, True, "0.1", None, 1e-9])
def test_a_default_precision_is_refused_by_its_own_name(precision):
    with pytest.raises(OptionError, match=rf"^default_precision={precision!r} "):
        EstimatorV2(default_precision=precision)


@pytest.mark.parametrize("primitive", [SamplerV2, EstimatorV2])
@pytest.mark.parametrize("pubs", [None, 3, QuantumCircuit(1)])
def test_pubs_are_a_list(primitive, pubs):
    with pytest.raises(OptionError, match=rf"^run\(\) takes a list of pubs, not {type(pubs).__name__}\."):
        primitive().run(pubs)
    if not isinstance(pubs, QuantumCircuit):
        with pytest.raises(OptionError, match=rf"^pub 1 is of type {type(pubs).__name__}\."):
            primitive().run(pub for pub in [(bell(), "ZZ")[: 1 + (primitive is EstimatorV2)], pubs])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_no_rows_give_an_empty_shape(shape, dynamic):
    angle = Parameter("a")
    circuit = QuantumCircuit(QuantumRegister(2), ClassicalRegister(2, "c"), ClassicalRegister(9, "d"))
    circuit.rx(angle, 0)
    circuit.measure(0, 0)
    if dynamic:
        circuit.h(0)
    values = np.empty((*shape, 1))
    data = SamplerV2().run([(circuit, values, 7)]).result()[0].data
    assert (data.shape, data.c.shape, data.d.shape) == (shape, shape, shape)
    assert (data.c.num_shots, data.c.num_bits, data.d.num_bits) == (7, 2, 9)
    for precision in (0, 0.1):
        data = EstimatorV2().run([(circuit, "ZZ", values)], precision=precision).result()[0].data
        assert data.evs.shape == data.stds.shape == shape


def test_registers_without_bits_are_fields():
    circuit = QuantumCircuit(QuantumRegister(1), ClassicalRegister(0, "none"), ClassicalRegister(1, "c"))
    circuit.x(0)
    circuit.measure(0, 0)
    for sampler in (SamplerV2(), StatevectorSampler()):
        data = sampler.run([circuit], shots=5).result()[0].data
        assert list(data.keys()) == ["none", "c"]
        assert (data.none.num_bits, data.none.num_shots, data.none.array.shape) == (0, 5, (5, 0))
        assert data.c.get_counts() == {"1": 5}


def test_a_circuit_without_registers_warns_in_qiskits_words():
    messages = []
    for sampler in (SamplerV2(), StatevectorSampler()):
        with pytest.warns(UserWarning, match="no output classical registers") as warned:
            data = sampler.run([QuantumCircuit(1)], shots=5).result()[0].data
        assert len(data) == 0
        messages.append(str(warned[0].message))
    assert messages[0] == messages[1]


def test_qiskits_primitives_take_the_backends_own_seed():
    circuit = QuantumCircuit(3)
    circuit.h(range(3))
    circuit.measure_all()
    backend = OzakiBackend(seed_simulator=7)
    counts = [BackendSamplerV2(backend=backend).run([circuit]).result()[0].data.meas.get_counts() for _ in "ab"]
    assert counts[0] == counts[1]
    results = [backend.run(circuit, seed_simulator=seed).result() for seed in (None, 7, 8)]
    assert results[0].get_counts() == results[1].get_counts() != results[2].get_counts()
    assert OzakiBackend().run(circuit, seed_simulator=None).result().results[0].seed is not None
    free = bell(measured=False)
    evs = [BackendEstimatorV2(backend=backend).run([(free, "ZI")]).result()[0].data.evs for _ in "ab"]
    assert evs[0] == evs[1]
