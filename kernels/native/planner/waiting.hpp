// planner/waiting.hpp -- what waits in the list of rotations.cpp, and what it commutes with.
#pragma once

#include <cstdint>

#include "planner/pauli.hpp"

namespace qsim {

// Something that waits, on physical qubits.
struct Waiting {
    enum class Type : std::uint8_t { kCx, kClifford, kRotation, kDiagonal };
    explicit Waiting(Type t) : type(t) {}

    Type type;
    index_t control = 0, target = 0;  // of a CX: masks of one qubit
    index_t used = 0;                 // of a Clifford gate or another diagonal
    int qubit = 0;                    // of a Clifford gate
    Clifford gate{};
    PauliSum sum;
    std::size_t number = 0;  // of another diagonal: its own in the list

    // The qubits on which it acts like X, like Z, and otherwise: it commutes with what acts alike.
    struct Action {
        index_t x = 0, z = 0, any = 0;
        bool meets(const Action& o) const { return (x & (o.z | o.any)) || (z & (o.x | o.any)) || (any & (o.x | o.z | o.any)); }
        void operator|=(const Action& o) { x |= o.x, z |= o.z, any |= o.any; }
        index_t all() const { return x | z | any; }
    };
    Action action() const {
        if (type == Type::kCx) return {target, control, 0};
        if (type == Type::kDiagonal) return {0, used, 0};
        if (type == Type::kRotation) return {sum.x & ~sum.z, sum.z & ~sum.x, sum.x & sum.z};
        if (gate.keeps_x()) return {used, 0, 0};
        if (gate.keeps_z()) return {0, used, 0};
        return {0, 0, used};
    }
};

}  // namespace qsim
