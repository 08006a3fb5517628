"""Random dynamic circuits: nested control flow, expressions of every type; imports nothing of the package."""

import numpy as np
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Clbit, Duration
from qiskit.circuit.classical import expr, types

MAX_BRANCHINGS = 7  # measurements and resets that one run may meet: 128 branches for the slow reference
GATES = ["h", "x", "t", "sx", "rx", "ry", "cx", "cz", "swap", "crx", "ccx"]
UINT, FLOAT, BOOL, DURATION = "uint", "float", "bool", "duration"


class Expressions:
    """Random expressions over the bits of a circuit and the variables in scope; none fails at run time."""

    def __init__(self, rng, circuit):
        self.rng, self.circuit, self.variables = rng, circuit, []

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def known(self, kind, width=None):
        return [
            var
            for var in self.variables
            if {types.Bool: BOOL, types.Float: FLOAT, types.Duration: DURATION}.get(var.type.kind, UINT) == kind
            and (width is None or var.type.width == width)
        ]

    def bool(self, depth=2):
        leaf = [lambda: expr.lift(self.pick(self.circuit.clbits)), lambda: expr.lift(bool(self.rng.integers(2)))]
        leaf += [lambda: self.pick(self.known(BOOL))] * (2 * bool(self.known(BOOL)))
        if depth <= 0:
            return self.pick(leaf)()
        two = lambda make: make(self.bool(depth - 1), self.bool(depth - 1))  # noqa: E731
        width = int(self.rng.integers(1, 6))
        ordered = [expr.less, expr.less_equal, expr.greater, expr.greater_equal, expr.equal, expr.not_equal]
        return self.pick(
            [
                self.pick(leaf),
                lambda: expr.logic_not(self.bool(depth - 1)),
                lambda: expr.logic_not(self.uint(width, depth - 1)),
                lambda: expr.bit_not(self.bool(depth - 1)),
                lambda: two(self.pick([expr.logic_and, expr.logic_or, expr.bit_and, expr.bit_or, expr.bit_xor])),
                lambda: two(self.pick([expr.equal, expr.not_equal])),
                lambda: self.pick(ordered)(self.uint(width, depth - 1), self.uint(width, depth - 1)),
                lambda: self.pick(ordered)(self.float(depth - 1), self.float(depth - 1)),
                lambda: self.pick(ordered)(self.duration(depth - 1), self.duration(depth - 1)),
                lambda: expr.index(self.uint(width, depth - 1), int(self.rng.integers(width))),
                lambda: expr.cast(self.uint(width, depth - 1), types.Bool()),
                lambda: expr.cast(self.float(depth - 1), types.Bool()),
            ]
        )()

    def uint(self, width, depth=2):
        type_ = types.Uint(width)
        leaf = [lambda: expr.lift(int(self.rng.integers(2**width)), type_)]
        registers = [register for register in self.circuit.cregs if register.size == width]
        leaf += [lambda: expr.lift(self.pick(registers))] * (2 * bool(registers))
        leaf += [lambda: self.pick(self.known(UINT, width))] * (2 * bool(self.known(UINT, width)))
        if depth <= 0:
            return self.pick(leaf)()
        two = lambda make: make(self.uint(width, depth - 1), self.uint(width, depth - 1))  # noqa: E731
        other = int(self.rng.integers(1, 7))
        return self.pick(
            [
                self.pick(leaf),
                lambda: expr.bit_not(self.uint(width, depth - 1)),
                lambda: two(self.pick([expr.bit_and, expr.bit_or, expr.bit_xor])),
                lambda: two(self.pick([expr.add, expr.sub, expr.mul])),
                lambda: expr.div(self.uint(width, depth - 1), expr.bit_or(self.uint(width, depth - 1), 1)),
                lambda: self.pick([expr.shift_left, expr.shift_right])(
                    self.uint(width, depth - 1), self.uint(other, depth - 1)
                ),
                lambda: expr.cast(self.uint(other, depth - 1), type_),
                lambda: expr.cast(self.bool(depth - 1), type_),
                lambda: expr.cast(expr.cast(self.uint(min(other, width), depth - 1), types.Float()), type_),
            ]
        )()

    def float(self, depth=2):
        leaf = [lambda: expr.lift(float(np.round(self.rng.normal(), 2)))]
        leaf += [lambda: self.pick(self.known(FLOAT))] * (2 * bool(self.known(FLOAT)))
        if depth <= 0:
            return self.pick(leaf)()
        two = lambda make: make(self.float(depth - 1), self.float(depth - 1))  # noqa: E731
        length = Duration.dt(int(self.rng.integers(1, 9)))
        return self.pick(
            [
                self.pick(leaf),
                lambda: two(self.pick([expr.add, expr.sub, expr.mul, expr.div])),
                lambda: expr.negate(self.float(depth - 1)),
                lambda: expr.cast(self.uint(3, depth - 1), types.Float()),
                lambda: expr.cast(self.bool(depth - 1), types.Float()),
                lambda: expr.div(self.duration(depth - 1), length),
            ]
        )()

    def duration(self, depth=2):
        leaf = [lambda: expr.lift(Duration.dt(int(self.rng.integers(9))))]
        leaf += [lambda: self.pick(self.known(DURATION))] * (2 * bool(self.known(DURATION)))
        if depth <= 0:
            return self.pick(leaf)()
        factor = [lambda: self.uint(2, depth - 1), lambda: expr.lift(float(np.round(self.rng.normal(), 1)))]
        return self.pick(
            [
                self.pick(leaf),
                lambda: self.pick([expr.add, expr.sub])(self.duration(depth - 1), self.duration(depth - 1)),
                lambda: expr.mul(self.duration(depth - 1), self.pick(factor)()),
                lambda: expr.mul(self.pick(factor)(), self.duration(depth - 1)),
                lambda: expr.div(self.duration(depth - 1), self.pick([2.0, 0.5, -4.0])),
                lambda: expr.negate(self.duration(depth - 1)),
            ]
        )()

    def of(self, type_, depth=2):
        if type_.kind is types.Uint:
            return self.uint(type_.width, depth)
        return {types.Bool: self.bool, types.Float: self.float, types.Duration: self.duration}[type_.kind](depth)


class Writer:
    """Appends random statements to a circuit."""

    def __init__(self, rng):
        self.rng = rng
        bits = [QuantumRegister(int(rng.integers(2, 5))), ClassicalRegister(2, "a"), ClassicalRegister(3, "b")]
        self.circuit = QuantumCircuit(*bits, [Clbit()], name="dynamic")
        self.make = Expressions(rng, self.circuit)
        self.left = MAX_BRANCHINGS
        self.names = 0
        self.loops = False  # whether break and continue have a loop to go to

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def add_declare(self, *_):
        kinds = [types.Bool(), types.Float(), types.Duration(), types.Uint(int(self.rng.integers(1, 6)))]
        type_ = self.make.pick(kinds)
        self.make.variables.append(self.circuit.add_var(self.name(), self.make.of(type_, 1)))

    def write(self, count, depth, rounds=1):
        """``count`` statements, in a scope of their own, that run ``rounds`` times at most."""
        outside = len(self.make.variables)
        for _ in range(count):
            self.statement(depth, rounds)
        del self.make.variables[outside:]

    def statement(self, depth, rounds):
        options = ["gate"] * 4 + ["store"] * 2 + ["declare", "nothing"]
        options += ["measure"] * 3 + ["reset"] if self.left >= rounds else []
        options += ["branch", "branch", "switch", "for", "while", "box"] if depth > 0 else []
        options += ["jump"] * 4 if self.loops else []
        getattr(self, f"add_{self.make.pick(options)}")(depth, rounds)

    def add_gate(self, *_):
        name, circuit = self.make.pick(GATES), self.circuit
        count = {"ccx": 3, "cx": 2, "cz": 2, "swap": 2, "crx": 2}.get(name, 1)
        if count > circuit.num_qubits:
            return
        angles = [float(self.rng.uniform(0, 6))] if "r" in name else []
        getattr(circuit, name)(*angles, *(int(q) for q in self.rng.permutation(circuit.num_qubits)[:count]))

    def add_nothing(self, *_):
        qubit = int(self.rng.integers(self.circuit.num_qubits))
        stretch = self.circuit.add_stretch(self.name())
        self.circuit.delay(expr.add(stretch, Duration.dt(100)) if self.rng.integers(2) else 100, qubit)
        self.circuit.barrier()

    def add_measure(self, _, rounds):
        self.left -= rounds
        self.circuit.measure(int(self.rng.integers(self.circuit.num_qubits)), int(self.rng.integers(6)))

    def add_reset(self, _, rounds):
        self.left -= rounds
        self.circuit.reset(int(self.rng.integers(self.circuit.num_qubits)))

    def add_store(self, *_):
        target = self.make.pick([*self.make.variables, *self.circuit.clbits, *self.circuit.cregs])
        target = expr.lift(target)
        value = self.make.of(target.type)
        if target.type.kind is types.Uint and self.rng.integers(2):
            target, value = expr.index(target, int(self.rng.integers(target.type.width))), self.make.bool()
        self.circuit.store(target, value)

    def add_branch(self, depth, rounds):
        register = self.make.pick(self.circuit.cregs)
        legacy = [(register, int(self.rng.integers(2**register.size))), (self.make.pick(self.circuit.clbits), 1)]
        test = self.make.pick([*legacy, self.make.bool(), self.make.bool()])
        with self.circuit.if_test(test) as otherwise:
            self.write(int(self.rng.integers(3)), depth - 1, rounds)
        if self.rng.integers(2):
            with otherwise:
                self.write(int(self.rng.integers(3)), depth - 1, rounds)

    def add_switch(self, depth, rounds):
        width = int(self.rng.integers(1, 4))
        target = self.make.pick([self.make.uint(width), self.make.bool(), self.circuit.cregs[0]])
        size = 2**width
        if not isinstance(target, expr.Expr):
            size = 2**target.size
        elif target.type.kind is types.Bool:
            size = 2
        values = [int(value) for value in self.rng.permutation(size)]
        with self.circuit.switch(target) as case:
            with case(*values[:2]):
                self.write(int(self.rng.integers(1, 3)), depth - 1, rounds)
            if len(values) > 2:
                with case(values[2]):
                    self.write(1, depth - 1, rounds)
            if self.rng.integers(2) and len(values) > 3:
                with case(case.DEFAULT):
                    self.write(1, depth - 1, rounds)

    def inside_loop(self, depth, rounds):
        outer, self.loops = self.loops, True
        self.write(int(self.rng.integers(1, 4)), depth - 1, rounds)
        self.loops = outer

    def add_jump(self, *_):
        with self.circuit.if_test(self.make.bool(1)):
            self.make.pick([self.circuit.break_loop, self.circuit.continue_loop])()

    def add_box(self, depth, rounds):
        outer, self.loops = self.loops, False
        with self.circuit.box():
            self.write(int(self.rng.integers(1, 3)), depth - 1, rounds)
        self.loops = outer

    def add_for(self, depth, rounds):
        count = int(self.rng.integers(4))
        kind = self.make.pick(["plain", "variable", "parameter"])
        if kind == "variable":
            variable = expr.Var.new(self.name(), types.Uint(4))
            # Qiskit builds no loop over a variable whose body uses another variable from outside
            outer, self.make.variables = self.make.variables, [variable]
            with self.circuit.for_loop(range(2, 2 + count), variable):
                self.inside_loop(depth, rounds * max(count, 1))
            self.make.variables = outer
            return
        with self.circuit.for_loop(range(count) if kind == "plain" else [3, 1, 4][:count]) as parameter:
            if kind == "parameter":
                self.circuit.rx(parameter * 0.7, 0)
            self.inside_loop(depth, rounds * max(count, 1))

    def add_while(self, depth, rounds):
        counter = self.circuit.add_var(self.name(), expr.lift(0, types.Uint(3)))
        limit = int(self.rng.integers(1, 4))
        with self.circuit.while_loop(expr.logic_and(expr.less(counter, limit), self.make.bool(1))):
            self.circuit.store(counter, expr.add(counter, 1))
            self.inside_loop(depth, rounds * limit)


def random_dynamic_circuit(rng):
    """A circuit of a few qubits and 6 classical bits, all of them written."""
    writer = Writer(rng)
    for _ in range(3):
        writer.add_declare()
    for qubit in range(writer.circuit.num_qubits):
        writer.circuit.ry(float(rng.uniform(0, 3)), qubit)
    writer.write(int(rng.integers(6, 14)), 3)
    writer.left = 1
    for qubit in range(min(2, writer.circuit.num_qubits)):
        writer.circuit.measure(qubit, qubit)
    return writer.circuit
