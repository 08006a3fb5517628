"""Classical expressions through a circuit: every operation against Python, widths, casts, and what has no value."""

import math
import operator

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import Duration
from qiskit.circuit.classical import expr, types

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import LoweringError, ProgramError
from qsim_ozaki.runtime.classical import OPERATIONS

WIDTHS = (1, 3, 8)


def bits_of(value, width):
    """What the expression ``value`` stores in ``width`` classical bits."""
    circuit = QuantumCircuit(1, width)
    circuit.store(circuit.cregs[0] if width > 1 else circuit.clbits[0], value)
    (text,) = OzakiBackend(threads=1).run(circuit, shots=1).result().data(0)["counts"]
    return int(text, 16)


def holds(value):
    return bits_of(value, 1) == 1


def lifted(value, width):
    return expr.lift(value, types.Uint(width))


def test_every_operation_of_qiskit_has_a_meaning():
    assert {op.name.lower() for op in expr.Binary.Op} == OPERATIONS.keys() | {"logic_and", "logic_or"}
    assert {op.name for op in expr.Unary.Op} == {"BIT_NOT", "LOGIC_NOT", "NEGATE"}


@pytest.mark.parametrize(
    ("make", "meaning"),
    [
        (expr.bit_and, operator.and_),
        (expr.bit_or, operator.or_),
        (expr.bit_xor, operator.xor),
        (expr.add, operator.add),
        (expr.sub, operator.sub),
        (expr.mul, operator.mul),
        (expr.div, operator.floordiv),
        (expr.shift_left, operator.lshift),
        (expr.shift_right, operator.rshift),
    ],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("width", [3, 8, 70])
def test_arithmetic_of_unsigned_integers_wraps_at_their_width(make, meaning, width, rng):
    for _ in range(4):
        left, right = (int.from_bytes(rng.bytes(9), "little") % 2**width for _ in range(2))
        right = right % (2 * width) if "shift" in make.__name__ else right or 1
        want = meaning(left, right) % 2**width
        assert bits_of(make(lifted(left, width), lifted(right, width)), width) == want, (left, right)


@pytest.mark.parametrize(
    ("make", "meaning"),
    [
        (expr.equal, operator.eq),
        (expr.not_equal, operator.ne),
        (expr.less, operator.lt),
        (expr.less_equal, operator.le),
        (expr.greater, operator.gt),
        (expr.greater_equal, operator.ge),
    ],
    ids=lambda make: make.__name__,
)
def test_comparisons_of_every_type(make, meaning):
    for left, right in [(1, 2), (2, 2), (3, 2)]:
        assert holds(make(lifted(left, 4), lifted(right, 9))) == meaning(left, right)
        assert holds(make(expr.lift(left / 4), expr.lift(right / 4))) == meaning(left, right)
        lengths = expr.lift(Duration.ns(left * 1000.0)), expr.lift(Duration.us(right * 1.0))
        assert holds(make(*lengths)) == meaning(left, right)


def test_floats_are_ieee():
    for left, right in [(1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (1.0, -0.0), (7.0, 4.0), (1e308, 1e-308)]:
        with np.errstate(all="ignore"):
            want = np.float64(left) / np.float64(right)
        quotient = expr.div(expr.lift(left), expr.lift(right))
        assert holds(expr.equal(quotient, expr.lift(float(want)))) == (not math.isnan(want)), (left, right)
        assert holds(expr.less(quotient, expr.lift(0.0))) == bool(want < 0)
    assert holds(expr.equal(expr.negate(expr.lift(2.5)), expr.lift(-2.5)))


@pytest.mark.parametrize("width", WIDTHS)
def test_casts(width):
    low = lambda value: bits_of(expr.cast(value, types.Uint(width)), width)  # noqa: E731
    assert low(lifted(0b1011010, 7)) == 0b1011010 % 2**width
    assert low(expr.lift(True)) == 1
    assert low(expr.lift(0.99)) == 0
    assert low(expr.lift(-0.99)) == 0
    assert low(expr.lift(1.5)) == 1
    assert holds(expr.cast(expr.lift(-0.1), types.Bool()))
    assert not holds(expr.cast(lifted(0, width), types.Bool()))
    assert holds(expr.equal(expr.cast(lifted(1, width), types.Float()), expr.lift(1.0)))
    assert bits_of(expr.bit_not(lifted(1, width)), width) == 2**width - 2
    assert holds(expr.logic_not(expr.lift(False)))
    assert holds(expr.index(lifted(1 << (width - 1), width), width - 1))


def test_logic_looks_right_only_where_left_leaves_it_open():
    zero = expr.equal(expr.div(lifted(1, 2), lifted(0, 2)), 1)
    assert not holds(expr.logic_and(expr.lift(False), zero))
    assert holds(expr.logic_or(expr.lift(True), zero))


def test_durations_are_exact_and_linear():
    ns, dt = (lambda value: expr.lift(Duration.ns(value))), (lambda value: expr.lift(Duration.dt(value)))
    third = expr.div(dt(1), expr.lift(3.0))
    assert holds(expr.equal(expr.mul(expr.lift(3.0), third), dt(1)))
    assert holds(expr.equal(expr.add(ns(1.5), dt(2)), expr.add(dt(2), ns(1.5))))
    assert holds(expr.less(expr.negate(dt(1)), expr.add(dt(1), ns(1.0))))
    assert holds(expr.equal(expr.div(expr.lift(Duration.us(3.0)), ns(1500.0)), expr.lift(2.0)))
    assert holds(expr.equal(expr.sub(dt(4), expr.mul(dt(2), lifted(2, 3))), dt(0)))


def test_stretches_are_at_least_zero_and_no_more_is_known():
    circuit = QuantumCircuit(1, 2)
    stretch = circuit.add_stretch("gap")
    longer = expr.add(stretch, Duration.dt(5))
    circuit.store(circuit.clbits[0], expr.less(stretch, longer))
    circuit.store(circuit.clbits[1], expr.greater(longer, Duration.dt(0)))
    circuit.delay(longer, 0)
    assert OzakiBackend().run(circuit, shots=1).result().get_counts() == {"11": 1}
    circuit.store(circuit.clbits[0], expr.less(stretch, Duration.dt(5)))
    with pytest.raises(
        ProgramError, match=r"whether -5 dt \+ 1 stretch 'gap' .* is not known. Compare durations of one"
    ):
        OzakiBackend().run(circuit).result()


TROUBLES = [
    (lambda _: expr.equal(expr.div(lifted(1, 2), lifted(0, 2)), 1), r"'bad': a division by 0\. Check the divisor"),
    (lambda _: expr.index(lifted(1, 2), lifted(2, 2)), r"bit 2 of an integer of 2 bits .* below 2"),
    (lambda _: expr.equal(expr.cast(expr.lift(4.0), types.Uint(2)), 1), r"4\.0 is cast .* 2 bits"),
    (lambda _: expr.equal(expr.cast(expr.lift(-1.0), types.Uint(2)), 1), r"-1\.0 is cast"),
    (lambda _: expr.equal(expr.cast(expr.lift(math.nan), types.Uint(2)), 1), r"nan is cast"),
    (lambda _: expr.greater(expr.cast(lifted(2**1100, 1101), types.Float()), 1.0), r"1101 bits is cast to a float"),
    (lambda circuit: unset(circuit), r"variable 'v' is read before it has a value\. Store one first"),
    (lambda _: less_duration(Duration.dt(1), Duration.ns(1.0)), r"whether .*-1e-09 s is longer than 0 is not known"),
    (lambda _: expr.less(expr.div(expr.lift(Duration.dt(1)), expr.lift(Duration.ns(1.0))), 1.0), r"ratio of 1 dt and"),
    (lambda _: expr.less(expr.div(expr.lift(Duration.dt(1)), expr.lift(Duration.dt(0))), 1.0), r"a duration of 0"),
    (lambda _: less_duration(expr.div(expr.lift(Duration.dt(1)), 0.0), Duration.dt(1)), r"a division by 0"),
    (lambda _: less_duration(expr.mul(expr.lift(Duration.dt(1)), math.inf), Duration.dt(1)), r"or divided by inf"),
]


def unset(circuit):
    variable = expr.Var.new("v", types.Bool())
    circuit.add_uninitialized_var(variable)
    return variable


def less_duration(left, right):
    return expr.less(expr.lift(left), expr.lift(right))


@pytest.mark.parametrize(("make", "message"), TROUBLES, ids=[message[:30] for _, message in TROUBLES])
def test_what_has_no_value_is_an_error_that_names_the_circuit(make, message):
    circuit = QuantumCircuit(1, 1, name="bad")
    circuit.store(circuit.clbits[0], make(circuit))
    job = OzakiBackend().run(circuit)
    with pytest.raises(ProgramError, match=r"circuit 'bad': .*") as caught:
        job.result()
    assert caught.match(message)


def test_inputs_have_the_values_of_the_run():
    circuit = QuantumCircuit(1, 6, name="asks")
    flag, level = circuit.add_input("flag", types.Bool()), circuit.add_input("level", types.Uint(3))
    angle, time = circuit.add_input("angle", types.Float()), circuit.add_input("time", types.Duration())
    circuit.store(circuit.clbits[0], flag)
    for bit in range(3):
        circuit.store(circuit.clbits[1 + bit], expr.index(level, bit))
    circuit.store(circuit.clbits[4], expr.less(angle, 0.5))
    circuit.store(circuit.clbits[5], expr.equal(time, Duration.us(2.0)))
    values = {"flag": True, "level": np.int64(5), angle: 0.25, "time": Duration.ns(2000.0)}
    assert OzakiBackend().run(circuit, shots=1, inputs=values).result().get_counts() == {"111011": 1}
    with pytest.raises(LoweringError, match=r"'asks' has no input variable 'levle'\. .*: flag, level, angle, time"):
        OzakiBackend().run(circuit, inputs=values | {"levle": 1})
    for name, bad in [("flag", 2), ("level", 8), ("level", -1), ("level", 1.5), ("time", 3.0)]:
        with pytest.raises(LoweringError, match=f"'asks': {bad} is no value for input variable '{name}'"):
            OzakiBackend().run(circuit, inputs=values | {name: bad})


def test_captured_variables_are_inputs_too():
    flag = expr.Var.new("flag", types.Bool())
    circuit = QuantumCircuit(1, 1, captures=[flag])
    circuit.store(circuit.clbits[0], expr.logic_not(flag))
    assert OzakiBackend().run(circuit, shots=1, inputs={"flag": False}).result().get_counts() == {"1": 1}
    with pytest.raises(LoweringError, match=r"input variable 'flag' of type Bool.* has no value"):
        OzakiBackend().run(circuit)
