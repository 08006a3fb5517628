"""NumPy twin of `tile/interpreter.cu`: runs a packed tile program word by word, to test packing without a GPU."""

import numpy as np

from qsim_ozaki.engines.cuda import interpreter as cp


def run(program, state, precision):
    """The state after one pass of ``program``; every tile, thread and register at once."""
    shape = cp.SHAPES[precision]
    tile_qubits = len(program.tile)
    twin = _Twin(program, shape, tile_qubits)
    tiles = np.arange(program.num_tiles, dtype=np.int64)
    base = tiles.copy()
    for start, length in program.runs:
        low = (1 << start) - 1
        base = (base & low) | ((base & ~low) << length)
    return twin.run(np.array(state), base)


class _Twin:
    def __init__(self, program, shape, tile_qubits):
        self.words, self.program, self.shape = program.words, program, shape
        self.k = shape.register_qubits
        self.amps = 1 << self.k
        self.threads = 1 << (tile_qubits - self.k)
        self.tables = dict(program.tables)
        self.real = np.float64 if shape.amp_bytes == 16 else np.float32

    def layout(self, at, tile_base):
        w = self.words[at:].astype(np.int64)
        strides, masks = w[: self.k], w[self.k : 2 * self.k] // self.shape.amp_bytes
        table = w[2 * self.k : 2 * self.k + 2 * self.threads].reshape(-1, 2)
        r = np.arange(self.amps)
        offset = sum((r >> b & 1) * strides[b] for b in range(self.k))
        xor = np.zeros_like(r)
        for b in range(self.k):
            xor ^= (r >> b & 1) * masks[b]
        self.masks = masks
        self.base = tile_base[:, None] + table[None, :, 0]
        self.index = self.base[:, :, None] + offset
        self.slot = (table[:, 1] // self.shape.amp_bytes)[:, None] ^ xor
        assert len(np.unique(self.slot)) == self.slot.size

    def amps_at(self, at, count):
        kind = np.complex128 if self.shape.amp_bytes == 16 else np.complex64
        words = count * self.shape.amp_bytes // 8
        return self.words[at : at + words].view(kind)

    def run(self, state, tile_base):
        self.layout(self.program.load_layout, tile_base)
        fresh = sum(1 << q for q in self.program.fresh_qubits)
        a = np.where(self.index & fresh, 0, state[self.index])
        shared = np.full((len(tile_base), self.slot.size), np.nan, a.dtype)
        pc = self.program.first_op
        while True:
            word = int(self.words[pc])
            code, arg, at = word & 255, word >> 8 & 0xFFFFFF, word >> 32
            pc += 1
            if code == cp.END:
                break
            if code == cp.PREFETCH:
                continue
            if code == cp.EXCHANGE:
                shared[:, self.slot] = a
                self.layout(at, tile_base)
                a = shared[:, self.slot]
            else:
                a = self.apply(a, code, arg, at)
        state[self.index] = a * self.real(self.program.scale)
        return state

    def condition(self, at):
        mask, value = (int(x) for x in self.words[at : at + 2])
        return (self.base & mask) == value

    def acts(self, arg, at):
        r = np.arange(self.amps)
        return self.condition(at)[:, :, None] & ((r & (arg & 31)) == (arg >> 5 & 31))

    def real_at(self, at):
        return self.real(self.words[at : at + 1].view(np.float64)[0])

    def apply(self, a, code, arg, at):
        r = np.arange(self.amps)
        if code == cp.SCALE:
            return a * self.real_at(at)
        if code == cp.HADAMARD_ALL:
            for b in range(self.k):
                a = self.apply(a, cp.HADAMARD + b, 0, 0)
            return a
        if code == cp.ROTATE_ALL:
            for b in range(self.k):
                a = self.apply(a, cp.ROTATE + b, 0, at + b)
            return a
        if code == cp.PHASE_TABLE:
            needed, positions = (int(x) for x in self.words[at : at + 2])
            select = np.zeros_like(self.base)
            for i in range(arg):
                select |= (self.base >> (positions >> 8 * i & 255) & 1) << i
            table = self.amps_at(at + 2, self.amps << arg).reshape(self.amps, -1)
            return np.where(needed >> r & 1, a * table.T[select], a).astype(a.dtype)
        if code == cp.PARITY:
            outer, odd = (int(x) for x in self.words[at : at + 2])
            parity = (np.bitwise_count(self.base & outer) & 1)[:, :, None] ^ (odd >> r & 1)
            return (a * self.amps_at(at + 2, 2)[parity]).astype(a.dtype)
        if code in (cp.FACTOR, cp.SIGN):
            return self.factor(a, code, arg, at)
        if code in (cp.DIAGONAL, cp.PERMUTE):
            return self.lookup(a, code, arg, at)
        if code == cp.MATRIX_ALL:
            m = self.amps_at(at + 2, self.amps**2).reshape(self.amps, self.amps)
            return np.where(self.condition(at)[:, :, None], a @ m.T, a)
        return self.small_matrix(a, code, arg, at)

    def factor(self, a, code, arg, at):
        r = np.arange(self.amps)
        angle = np.full(self.base.shape, self.words[at], np.uint64)
        for i in range(arg >> 5):
            require, multiplier, mask, last = (int(x) for x in self.words[at + 2 + 4 * i : at + 6 + 4 * i])
            value = (self.base >> (last & 63) & mask) | last >> 32
            term = value.astype(np.uint64) * np.uint64(multiplier)
            angle += np.where((self.base & require) == require, term, np.uint64(0))
        w = cp.phases_of(angle.reshape(-1).tolist()).reshape(angle.shape)
        if code == cp.SIGN:
            assert np.all((angle == 0) | (angle == 1 << 63))
        on = (r & (arg & 31)) == (arg & 31)
        return np.where(on, a * w[:, :, None], a).astype(a.dtype)

    def small_matrix(self, a, code, arg, at):
        r = np.arange(self.amps)
        family = code // 8 * 8
        if code >= cp.MATRIX4:
            low, high = (code - cp.MATRIX4) // 8, (code - cp.MATRIX4) % 8
            r0 = r[(r >> low & 1) + (r >> high & 1) == 0]
            where = np.stack([r0, r0 | 1 << low, r0 | 1 << high, r0 | 1 << low | 1 << high])
            matrix = self.amps_at(at + 2, 16).reshape(4, 4)
        else:
            r0 = r[(r >> code % 8 & 1) == 0]
            where = np.stack([r0, r0 | 1 << code % 8])
            t = self.real_at(at)
            matrix = {
                cp.HADAMARD: lambda: np.array([[1, 1], [1, -1]]),
                cp.ROTATE: lambda: np.array([[1, -t], [t, 1]]),
                cp.ROTATE_FAR: lambda: np.array([[t, -1], [1, t]]),
                cp.FLIP: lambda: np.array([[0, 1], [1, 0]]),
                cp.MATRIX2: lambda: self.amps_at(at + 2, 4).reshape(2, 2),
            }[family]()
        out = a.copy()
        out[:, :, where] = np.einsum("xy,tsyr->tsxr", matrix, a[:, :, where])
        if family in (cp.HADAMARD, cp.ROTATE, cp.ROTATE_FAR):
            return out.astype(a.dtype)
        return np.where(self.acts(arg, at), out, a).astype(a.dtype)

    def lookup(self, a, code, arg, at):
        k = arg >> 10
        words = self.words[at + 4 : at + 4 + self.k + 2 * k].astype(np.int64)
        parts, positions = words[: self.k], words[self.k : self.k + k]
        r = np.arange(self.amps)
        entry = sum((self.base >> p & 1) << i for i, p in enumerate(positions) if p < 64) + np.zeros_like(self.base)
        entry = entry[:, :, None] + sum((r >> b & 1) * parts[b] for b in range(self.k))
        entries = self.tables[at + 2]
        if code == cp.DIAGONAL:
            return np.where(self.acts(arg, at), a * entries[entry], a)
        source = self.tables[at + 3][entry].astype(np.int64)
        shared = np.empty((len(a), self.slot.size), a.dtype)
        shared[:, self.slot] = a
        masks = words[self.k + k :] // self.shape.amp_bytes
        slot = np.broadcast_to(self.slot, entry.shape).copy()
        for i in range(k):
            slot ^= ((source ^ entry) >> i & 1) * masks[i]
        moved = np.take_along_axis(shared[:, None, :].repeat(a.shape[1], 1), slot, 2) * entries[source]
        return np.where(self.acts(arg, at), moved, a)
