"""Options by Aer's names: taken, noted once and ignored, or refused, as the one table says."""

import warnings

import pytest
from qiskit import QuantumCircuit
from qiskit.result.models import MeasReturnType

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import LoweringError, OptionError
from qsim_ozaki.provider import foreign_options
from qsim_ozaki.provider.foreign_options import FOREIGN, IGNORED, REFUSED

qiskit_aer = pytest.importorskip("qiskit_aer", reason="extra 'compare' is not installed")
aer_noise = pytest.importorskip("qiskit_aer.noise")

NAMES = {
    treatment: [name.replace("*", "x") for name, option in FOREIGN.items() if option.treatment == treatment]
    for treatment in (IGNORED, REFUSED)
}


@pytest.fixture
def no_notes(monkeypatch):
    """As in a new process: no option has been noted yet."""
    monkeypatch.setattr(foreign_options, "_noted", set())


@pytest.fixture
def circuit():
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure([0, 1], [0, 1])
    return circuit


def noise():
    model = aer_noise.NoiseModel()
    model.add_all_qubit_quantum_error(aer_noise.depolarizing_error(0.1, 1), ["h"])
    return model


TAKEN = [
    ({"method": "statevector"}, {}),
    ({"method": "automatic"}, {}),
    ({"device": "CPU"}, {"engine": "cpu"}),
    ({"device": "GPU"}, {"engine": "cuda"}),
    ({"engine": "gpu"}, {"engine": "cuda"}),
    ({"precision": "single"}, {"precision": "single"}),
    ({"max_parallel_threads": 2}, {"threads": 2}),
    ({"max_memory_mb": 100}, {"max_memory_bytes": 100 << 20}),
    ({"noise_model": None}, {}),
    ({"noise_model": aer_noise.NoiseModel()}, {}),
    ({"meas_level": 2}, {}),
    ({"meas_return": "single"}, {}),
    ({"meas_level": 2, "meas_return": MeasReturnType.AVERAGE}, {}),
    ({"memory": None}, {"memory": False}),
    (dict.fromkeys(FOREIGN), {}),
]


@pytest.mark.parametrize(("values", "expected"), TAKEN, ids=lambda value: ",".join(value)[:40])
def test_an_option_that_means_something_is_taken(values, expected):
    defaults = dict(OzakiBackend().options.items())
    assert dict(OzakiBackend(**values).options.items()) == defaults | expected
    backend = OzakiBackend(shots=10)
    backend.set_options(**values)
    assert dict(backend.options.items()) == defaults | {"shots": 10} | expected


@pytest.mark.parametrize("values", [values for values, new in TAKEN if "cuda" not in new.values()], ids=str)
def test_a_taken_option_runs_and_changes_no_count(circuit, values):
    backend = OzakiBackend(seed_simulator=5)
    assert backend.run(circuit, **values).result().get_counts() == backend.run(circuit).result().get_counts()
    assert backend.plan(circuit, **values).explain()
    assert backend.estimate(circuit, **values).fits


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("method", name) for name in ("density_matrix", "matrix_product_state", "stabilizer", "unitary", 3)),
        ("device", "TPU"),
        ("device", 0),
        ("max_memory_mb", -1),
        ("max_memory_mb", 1.5),
        ("max_memory_mb", True),
        ("noise_model", noise()),
        ("noise_model", "ibm_fez"),
        ("meas_level", 0),
        ("meas_level", 1),
        ("meas_level", True),
        ("meas_return", "all"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_the_options_name(circuit, name, value):
    with pytest.raises(OptionError, match=rf"^{name}=.* is not allowed\. Use "):
        OzakiBackend(**{name: value})
    with pytest.raises(OptionError, match=rf"^{name}=.* is not allowed\. Use "):
        OzakiBackend().run(circuit, **{name: value})


def test_a_taken_value_is_checked_as_our_option():
    with pytest.raises(OptionError, match="threads=-1 is not allowed"):
        OzakiBackend(max_parallel_threads=-1)
    with pytest.raises(OptionError, match=r"max_parallel_threads=2 also sets threads, which is given too"):
        OzakiBackend(threads=2, max_parallel_threads=2)


@pytest.mark.parametrize("name", NAMES[REFUSED])
def test_a_refused_option_says_what_to_use_instead(circuit, name):
    with pytest.raises(OptionError, match=f"option '{name}' is not an option of this backend: "):
        OzakiBackend(**{name: object()})


@pytest.mark.parametrize("name", NAMES[IGNORED])
def test_an_ignored_option_is_noted_once(circuit, name, no_notes):
    backend = OzakiBackend(seed_simulator=1)
    with pytest.warns(UserWarning, match=rf"^ignored: {name}\. ") as notes:
        counts = backend.run(circuit, **{name: 1}).result().get_counts()
    assert [note.filename for note in notes] == [__file__]
    assert backend.run(circuit, **{name: 2}).result().get_counts() == counts  # a second warning would be an error


def test_all_of_aers_defaults_are_taken(no_notes):
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        backend = OzakiBackend(**dict(qiskit_aer.AerSimulator().options.items()))
    assert len(notes) == 1
    assert dict(backend.options.items()) == dict(OzakiBackend(engine="cpu").options.items())


@pytest.mark.parametrize("name", ["fusion", "max_memory", "shot", "parallel", "savestate"])
def test_other_names_are_still_unknown(name):
    with pytest.raises(OptionError, match=f"option '{name}' is not known"):
        OzakiBackend(**{name: 1})


def test_circuits_by_name(circuit):
    backend = OzakiBackend(seed_simulator=4)
    want = backend.run(circuit).result().get_counts()
    assert backend.run(circuits=circuit).result().get_counts() == want
    assert backend.run(circuits=[circuit], shots=10).result().results[0].shots == 10
    with pytest.raises(OptionError, match="circuits twice"):
        backend.run(circuit, circuits=circuit)


@pytest.mark.parametrize("value", [None, 3, 1.5, object(), OzakiBackend])
@pytest.mark.parametrize("name", ["run_input", "circuits"])
def test_what_is_no_circuit_is_refused_in_our_words(name, value):
    with pytest.raises(Exception, match=r"^run\(\) takes QuantumCircuits, not \w+\. Pass a circuit or a list of them"):
        OzakiBackend().run(**{name: value})


@pytest.mark.parametrize("name", ["plan", "estimate"])
@pytest.mark.parametrize("value", [None, [QuantumCircuit(1)], "circuit"])
def test_a_plan_and_an_estimate_are_of_one_circuit(name, value):
    with pytest.raises(LoweringError, match=rf"^{name}\(\) takes one QuantumCircuit, not {type(value).__name__}\."):
        getattr(OzakiBackend(), name)(value)


def test_no_argument_at_all_is_refused_in_our_words():
    with pytest.raises(Exception, match=r"^run\(\) takes QuantumCircuits, not NoneType"):
        OzakiBackend().run()
