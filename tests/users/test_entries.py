"""The kinds behind the users' reports on seeds, options, parameters, saved results and files."""

import io
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from qiskit import QuantumCircuit, qasm3, qpy, transpile
from qiskit.circuit import (
    Parameter,
    ParameterVector,
)
from support.bell import bell

import qsim_ozaki
from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2, expectation_gradient
from qsim_ozaki.cli.load import load_circuit
from qsim_ozaki.errors import LoweringError, OptionError, QsimError

LEVELS = [None, 0, 1, 2, 3]
A = Parameter("a")


def exact(circuit, **options):
    return OzakiBackend(**options).run(circuit, shots=None).result().get_counts()


def at_level(circuit, level):
    return circuit if level is None else transpile(circuit, OzakiBackend(), optimization_level=level)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_t77_t79_executors_keep_streams_and_leave_global_generators_alone(pool):
    circuit = QuantumCircuit(6)
    circuit.h(range(6))
    circuit.measure_all()
    backend = OzakiBackend(memory=True, shots=50)
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    here = backend.run([circuit, bell(), circuit], seed_simulator=5).result()
    with pool(2) as executor:
        there = backend.run([circuit, bell(), circuit], seed_simulator=5, executor=executor).result()
        unseeded = backend.run([circuit, circuit], executor=executor).result()
    again = backend.run([circuit, circuit], seed_simulator=unseeded.results[0].seed).result()
    assert [there.get_memory(i) for i in range(3)] == [here.get_memory(i) for i in range(3)]
    assert here.get_memory(0) != here.get_memory(2)
    assert [again.get_memory(i) for i in range(2)] == [unseeded.get_memory(i) for i in range(2)]
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


MISSPELT = [
    (lambda: OzakiBackend(shotz=3), OptionError, "Did you mean 'shots'"),
    (lambda: OzakiBackend().run(bell(), executer=None), OptionError, "Did you mean 'executor'"),
    (lambda: OzakiBackend().run(bell(), time_out=3), OptionError, "Did you mean 'timeout'"),
    (lambda: OzakiBackend().plan(bell(), presicion="single"), OptionError, "Did you mean 'precision'"),
    (lambda: OzakiBackend().estimate(bell(), presicion="single"), OptionError, "Did you mean 'precision'"),
    (lambda: OzakiBackend().options.update_options(shotz=1), OptionError, "Did you mean 'shots'"),
    (lambda: OzakiBackend().run(bell(), timeout="x"), OptionError, "timeout='x' is not allowed. Use seconds above 0"),
    (lambda: OzakiBackend().run(bell(), timeout=0), OptionError, "timeout=0 is not allowed"),
    (lambda: OzakiBackend().run(bell(), progress=3), OptionError, "progress of type int is not allowed"),
    (lambda: OzakiBackend().run(bell(), executor=3), OptionError, "executor of type int is not allowed"),
    (lambda: OzakiBackend().run(bell(), inputs=3), OptionError, "inputs of type int is not allowed"),
    (lambda: SamplerV2(backend="qsim"), OptionError, "backend of type str is not allowed.*BackendSamplerV2"),
    (lambda: EstimatorV2(backend=3), OptionError, "backend of type int is not allowed"),
    (lambda: SamplerV2(default_shots=0), OptionError, "default_shots=0 is not allowed"),
    (lambda: EstimatorV2(default_precision="x"), OptionError, "default_precision='x' is not allowed"),
    (lambda: EstimatorV2(seed="a"), OptionError, r"^seed='a' is not allowed"),
    (lambda: SamplerV2(shots=3), TypeError, "unexpected keyword argument 'shots'"),
    (lambda: SamplerV2().run([bell()], shotz=3), TypeError, "unexpected keyword argument 'shotz'"),
    (lambda: EstimatorV2().run([], precison=0.1), TypeError, "unexpected keyword argument 'precison'"),
    (lambda: expectation_gradient(bell(), "ZZ", [], thread=1), TypeError, "unexpected keyword argument 'thread'"),
    (lambda: OzakiBackend().run(bell(), shots=1 << 54), OptionError, r"shots=18014398509481984 is more than 2\*\*53"),
    (lambda: OzakiBackend().run(bell(), shots=1 << 40, memory=True), OptionError, r"about 24.0 TiB; .* 2\*\*30 shots"),
]


@pytest.mark.parametrize(("call", "error", "message"), MISSPELT, ids=[message for _, _, message in MISSPELT])
def test_t80_t81_what_no_entry_point_takes_is_refused_at_once(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_t81_a_billion_shots_of_a_row_need_no_memory_of_their_own(monkeypatch):
    """Rows of more shots than a block are not stacked; the same counts whichever way."""
    circuit = QuantumCircuit(1)
    circuit.ry(A, 0)
    circuit.measure_all()
    few = OzakiBackend(seed_simulator=4).run(circuit, parameter_binds={A: 0.7}, shots=5000).result()
    assert few.results[0].metadata["steps"] == {"stack": 1}
    for module in ("runtime.sampling", "provider.rows"):
        monkeypatch.setattr(f"qsim_ozaki.{module}.SHOTS_PER_BLOCK", 1000)
    many = OzakiBackend(seed_simulator=4).run(circuit, parameter_binds={A: 0.7}, shots=5000).result()
    assert "stack" not in many.results[0].metadata["steps"]
    assert many.get_counts() == few.get_counts()


def opened(kind):
    circuit = QuantumCircuit(2, 2, name="open")
    circuit.h(0)
    circuit.measure(0, 0)
    bit, vector = circuit.clbits[0], ParameterVector("vec", 3)
    blocks = {
        "if": lambda: circuit.if_test((bit, 1)),
        "for": lambda: circuit.for_loop(range(2)),
        "while": lambda: circuit.while_loop((circuit.clbits[1], 1)),
        "box": lambda: circuit.box(),
    }
    if kind in blocks:
        with blocks[kind]():
            circuit.rx(A, 1)
    elif kind == "else":
        with circuit.if_test((bit, 1)) as otherwise:
            circuit.x(1)
        with otherwise:
            circuit.rx(A, 1)
    elif kind == "switch":
        with circuit.switch(bit) as case, case(0):
            circuit.rx(A, 1)
    elif kind == "nested":
        with circuit.if_test((bit, 1)), circuit.for_loop(range(2)), circuit.if_test((circuit.clbits[1], 0)):
            circuit.rx(A + vector[1], 1)
    else:
        circuit.if_test((bit, 1), QuantumCircuit(1, global_phase=A), [0], [])
    circuit.measure(1, 1)
    return circuit


@pytest.mark.parametrize("kind", ["if", "else", "for", "while", "box", "switch", "nested", "phase"])
def test_t83_unbound_parameters_inside_bodies_are_named_and_rows_bind_them(kind):
    circuit = opened(kind)
    with pytest.raises(LoweringError, match="'open' has unbound parameters: a" + (r", vec\[1\]" * (kind == "nested"))):
        OzakiBackend().run(circuit)
    values = np.arange(1, circuit.num_parameters + 1) * 0.9
    rows = OzakiBackend(shots=None).run(circuit, parameter_binds=[values]).result().get_counts()
    assert rows == pytest.approx(exact(circuit.assign_parameters(values)))


SAVES = {
    "save_statevector": (),
    "save_statevector_dict": (),
    "save_state": (),
    "save_probabilities": (),
    "save_probabilities_dict": (),
    "save_amplitudes": ([0, 1],),
    "save_amplitudes_squared": ([0, 3],),
    "save_density_matrix": ([0],),
    "save_expectation_value": ("ZZ",),
    "save_expectation_value_variance": ("XX",),
}


@pytest.mark.parametrize("name", SAVES)
def test_t86_every_save_goes_through_qpy_and_openqasm_3_says_no(name):
    circuit = bell(measured=False)
    getattr(qsim_ozaki, name)(circuit, *SAVES[name])
    file = io.BytesIO()
    qpy.dump(circuit, file)
    file.seek(0)
    (loaded,) = qpy.load(file)
    backend = OzakiBackend()
    assert repr(backend.run(loaded).result().data(0)) == repr(backend.run(circuit).result().data(0))
    with pytest.raises(qasm3.QASM3ExporterError, match="save_"):  # OpenQASM 3 has no word for it
        qasm3.dumps(circuit)
    with pytest.raises(LoweringError, match="already saves a state under label"):
        getattr(qsim_ozaki, name)(circuit, *SAVES[name])


HEAD = 'OPENQASM 3.0; include "stdgates.inc"; qubit[3] q; bit[3] c; '
TEXTS = {
    "if and else": ("x q[1]; c[1] = measure q[1]; if (c == 2) { x q[2]; } else { x q[0]; } c = measure q;", {"110": 1}),
    "break": (
        "for uint i in [0:9] { h q[0]; c[0] = measure q[0]; if (c[0]) { break; } }",
        {"000": 2**-10, "001": 1 - 2**-10},
    ),
    "loop values": ("for int i in {1, 3, 5} { rx(pi * i) q[0]; } c = measure q;", {"001": 1}),
    "reset": ("x q; reset q[0]; delay[100ns] q[1]; barrier q; c = measure q;", {"110": 1}),
    "modifiers": (
        "x q[0]; ctrl @ x q[0], q[1]; negctrl @ x q[1], q[2]; pow(2) @ s q[0]; "
        "ctrl(2) @ x q[0], q[1], q[2]; c = measure q;",
        {"111": 1},
    ),
    "alias": ("let r = q[1:2]; x r[0]; c = measure q;", {"010": 1}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_t89_openqasm_3_texts(name):
    text, want = TEXTS[name]
    assert exact(qasm3.loads(HEAD + text)) == pytest.approx(want)


def test_t89_a_switch_that_qiskits_importer_cannot_read_is_one_clear_error(tmp_path):
    circuit = QuantumCircuit(3, 3)
    circuit.x(1)
    circuit.measure(range(3), range(3))
    with circuit.switch(circuit.cregs[0]) as case, case(0b010):
        circuit.x(0)
    circuit.measure(range(3), range(3))
    assert exact(circuit) == {"011": 1}
    path = tmp_path / "switch.qasm"
    path.write_text(HEAD + "x q[1]; c = measure q; switch (c) { case 2 { x q[0]; } } c = measure q;")
    try:
        loaded = load_circuit(str(path))
    except QsimError as error:
        assert "switch.qasm: not OpenQASM 3 as Qiskit reads it: line 1, column 84" in str(error)  # noqa: PT017
        assert "SwitchStatement" in str(error)  # noqa: PT017
    else:
        assert exact(loaded) == {"011": 1}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("u0(1) q[0]; x q[1];", "010"),
        ("ryy_140(pi) q[0],q[1];", "011"),
        (
            "u3(pi,0,pi) q[0]; u2(0,pi) q[1]; u1(pi) q[1]; u2(0,pi) q[1]; cu3(pi,0,pi) q[0],q[2];",
            "111",
        ),
        ("x q[0]; measure q[0] -> c[0]; if(c==1) x q[1];", "011"),
    ],
)
def test_t89_openqasm_2_legacy_and_custom_gates(tmp_path, body, want):
    path = tmp_path / "legacy.qasm"
    custom = "gate ryy_140(p0) a,b { rx(pi/2) a; rx(pi/2) b; cx a,b; rz(p0) b; cx a,b; rx(-pi/2) a; rx(-pi/2) b; }"
    head = f'OPENQASM 2.0; include "qelib1.inc"; {custom} qreg q[3]; creg c[3]; '
    path.write_text(f"{head}{body} measure q -> c;")
    assert exact(load_circuit(str(path))) == pytest.approx({want: 1})
