"""The slow, obvious reference for dynamic circuits: branch by branch, in NumPy; imports nothing of the package."""

from fractions import Fraction

import numpy as np
from qiskit.circuit import CASE_DEFAULT, ClassicalRegister, Clbit, Parameter
from qiskit.circuit.classical import expr, types
from qiskit.quantum_info import Operator

IMPOSSIBLE = 1e-14  # a branch with less probability is rounding


class World:
    """One branch: its probability, its state (axis i is qubit n-1-i), bits and variables."""

    def __init__(self, probability, state, bits, variables):
        self.probability, self.state, self.bits, self.variables = probability, state, dict(bits), dict(variables)

    def copy(self):
        return World(self.probability, self.state.copy(), self.bits, self.variables)


def distribution(circuit, inputs=None):
    """Probability of each classical value, bit i of which is the circuit's clbit i."""
    state = np.zeros((2,) * circuit.num_qubits, complex)
    state[(0,) * circuit.num_qubits] = 1
    world = World(1.0, state, dict.fromkeys(circuit.clbits, 0), {})
    for var in circuit.iter_input_vars():
        world.variables[var.var] = inputs[var.name]
    qubits = {qubit: index for index, qubit in enumerate(circuit.qubits)}
    out = {}
    for end, signal in run(circuit, world, qubits, {bit: bit for bit in circuit.clbits}):
        assert signal is None
        value = sum(end.bits[bit] << index for index, bit in enumerate(circuit.clbits))
        out[value] = out.get(value, 0.0) + end.probability
    return out


def run(circuit, world, qubits, bits):
    """The branches (world, None or "break" or "continue") in which ``circuit`` ends."""
    going, ended = [world], []
    for item in circuit.data:
        following = []
        for each in going:
            for after, signal in step(item, each, qubits, bits):
                (following if signal is None else ended).append((after, signal))
        going = [after for after, _ in following]
    return ended + [(each, None) for each in going]


def step(item, world, qubits, bits):
    name, operation = item.operation.name, item.operation
    axes = [qubits[qubit] for qubit in item.qubits]
    if name in ("barrier", "delay"):
        return [(world, None)]
    if name == "measure":
        out = []
        for outcome in (0, 1):
            after = project(world, axes[0], outcome)
            if after is not None:
                after.bits[bits[item.clbits[0]]] = outcome
                out.append((after, None))
        return out
    if name == "reset":
        out = []
        for outcome in (0, 1):
            after = project(world, axes[0], outcome)
            if after is not None:
                if outcome:
                    after.state = apply(after.state, np.array([[0, 1], [1, 0]]), axes)
                out.append((after, None))
        return out
    if name == "store":
        store(operation.lvalue, value_of(operation.rvalue, world, bits), world, bits)
        return [(world, None)]
    if name in ("break_loop", "continue_loop"):
        return [(world, name.removesuffix("_loop"))]
    if hasattr(operation, "blocks"):
        return control(item, world, qubits, bits)
    world.state = apply(world.state, Operator(operation).data, axes)
    return [(world, None)]


def control(item, world, qubits, bits):
    operation = item.operation

    def enter(block, here):
        inner_qubits = {inner: qubits[outer] for inner, outer in zip(block.qubits, item.qubits, strict=True)}
        inner_bits = bits | {inner: bits[outer] for inner, outer in zip(block.clbits, item.clbits, strict=True)}
        return run(block, here, inner_qubits, inner_bits)

    if operation.name == "if_else":
        blocks = operation.blocks
        if holds(operation.condition, world, bits):
            return enter(blocks[0], world)
        return enter(blocks[1], world) if len(blocks) == 2 else [(world, None)]
    if operation.name == "switch_case":
        if isinstance(operation.target, expr.Expr):
            value = value_of(operation.target, world, bits)
        else:
            value = read(operation.target, world, bits)
        for labels, block in operation.cases_specifier():
            if CASE_DEFAULT in labels or any(value == label for label in labels):
                return enter(block, world)
        return [(world, None)]
    if operation.name == "box":
        return enter(operation.blocks[0], world)
    if operation.name == "for_loop":
        return for_loop(operation, enter, world)
    assert operation.name == "while_loop"
    ends, going = [], [world]
    while going:
        each = going.pop()
        if not holds(operation.condition, each, bits):
            ends.append((each, None))
            continue
        for after, signal in enter(operation.blocks[0], each):
            ends.append((after, None)) if signal == "break" else going.append(after)
    return ends


def for_loop(operation, enter, world):
    values, parameter, block = operation.params
    ends, going = [], [world]
    for value in values:
        body = block
        if isinstance(parameter, Parameter) and parameter in block.parameters:
            body = block.assign_parameters({parameter: value})
        following = []
        for each in going:
            if isinstance(parameter, expr.Var):
                each.variables[parameter.var] = value
            for after, signal in enter(body, each):
                (ends if signal == "break" else following).append((after, None))
        going = [after for after, _ in following]
    return ends + [(each, None) for each in going]


def apply(state, matrix, qubits):
    """``matrix`` on ``qubits``, the first of which is bit 0 of its index."""
    count, axes = len(qubits), [state.ndim - 1 - qubit for qubit in reversed(qubits)]
    tensor = np.reshape(matrix, (2,) * (2 * count))
    moved = np.tensordot(tensor, state, axes=(range(count, 2 * count), axes))
    return np.moveaxis(moved, range(count), axes)


def project(world, qubit, outcome):
    """The branch in which ``qubit`` reads ``outcome``; None where that cannot happen."""
    after = world.copy()
    picture = np.moveaxis(after.state, after.state.ndim - 1 - qubit, 0)
    picture[1 - outcome] = 0
    weight = float(np.sum(np.abs(after.state) ** 2))
    if world.probability * weight < IMPOSSIBLE:
        return None
    after.state /= np.sqrt(weight)
    after.probability *= weight
    return after


def read(bits_or_register, world, bits):
    if isinstance(bits_or_register, Clbit):
        return world.bits[bits[bits_or_register]]
    assert isinstance(bits_or_register, ClassicalRegister)
    return sum(world.bits[bits[bit]] << place for place, bit in enumerate(bits_or_register))


def holds(condition, world, bits):
    if isinstance(condition, expr.Expr):
        return bool(value_of(condition, world, bits))
    return read(condition[0], world, bits) == int(condition[1])


def store(target, value, world, bits):
    if isinstance(target, expr.Index):
        place = value_of(target.index, world, bits)
        whole = value_of(target.target, world, bits)
        digits = [whole >> k & 1 for k in range(target.target.type.width)]
        digits[place] = int(value)
        store(target.target, sum(digit << k for k, digit in enumerate(digits)), world, bits)
    elif target.standalone:
        world.variables[target.var] = value
    else:
        targets = [target.var] if isinstance(target.var, Clbit) else target.var
        for place, bit in enumerate(targets):
            world.bits[bits[bit]] = int(value) >> place & 1


def value_of(node, world, bits):
    """Bools and unsigned integers as ints, floats as numpy.float64, durations as exact numbers of dt."""
    here = lambda part: value_of(part, world, bits)  # noqa: E731
    if isinstance(node, expr.Var):
        return world.variables[node.var] if node.standalone else read(node.var, world, bits)
    if isinstance(node, expr.Value):
        if node.type.kind is types.Duration:
            assert node.value.unit() == "dt"
            return Fraction(node.value.value())
        return np.float64(node.value) if node.type.kind is types.Float else int(node.value)
    if isinstance(node, expr.Cast):
        return cast(here(node.operand), node.operand.type, node.type)
    if isinstance(node, expr.Index):
        return here(node.target) >> here(node.index) & 1
    if isinstance(node, expr.Unary):
        return unary(node.op, here(node.operand), node.type)
    return binary(node.op, here(node.left), here(node.right), node)


def cast(value, before, after):
    if after.kind is types.Bool:
        return int(value != 0)
    if after.kind is types.Float:
        return np.float64(value)
    if after.kind is types.Uint:
        return int(value) % 2**after.width
    assert before == after
    return value


def unary(op, value, type_):
    if op is expr.Unary.Op.NEGATE:
        return -value
    if op is expr.Unary.Op.LOGIC_NOT or type_.kind is types.Bool:
        return 1 - value
    return 2**type_.width - 1 - value


def binary(op, left, right, node):
    ops = expr.Binary.Op
    width = node.type.width if node.type.kind is types.Uint else None
    if op is ops.DIV:
        if width is not None:
            return left // right
        if node.left.type.kind is types.Duration:
            return float(left / right) if node.right.type.kind is types.Duration else left / Fraction(right)
        with np.errstate(all="ignore"):
            return np.float64(left) / np.float64(right)
    if op is ops.MUL and node.type.kind is types.Duration:
        return Fraction(left) * Fraction(right)
    with np.errstate(all="ignore"):
        value = {
            ops.BIT_AND: lambda: left & right,
            ops.BIT_OR: lambda: left | right,
            ops.BIT_XOR: lambda: left ^ right,
            ops.LOGIC_AND: lambda: int(left != 0 and right != 0),
            ops.LOGIC_OR: lambda: int(left != 0 or right != 0),
            ops.EQUAL: lambda: int(left == right),
            ops.NOT_EQUAL: lambda: int(left != right),
            ops.LESS: lambda: int(left < right),
            ops.LESS_EQUAL: lambda: int(left <= right),
            ops.GREATER: lambda: int(left > right),
            ops.GREATER_EQUAL: lambda: int(left >= right),
            ops.SHIFT_LEFT: lambda: left * 2**right,
            ops.SHIFT_RIGHT: lambda: left // 2**right,
            ops.ADD: lambda: left + right,
            ops.SUB: lambda: left - right,
            ops.MUL: lambda: left * right,
        }[op]()
    return value if width is None else value % 2**width
