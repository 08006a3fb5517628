// cpu/tile/compile.hpp -- operators of one tile pass, in order, to a TileProgram.
#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "cpu/tile/program.hpp"
#include "ir/op_list.hpp"

namespace qsim {

// Complex numbers that several may hold.
class Numbers {
  public:
    Numbers() = default;
    Numbers(Block block, std::size_t size) : block_(std::move(block)), size_(size) {}
    Numbers(const std::vector<complex_t>& values) : Numbers(OpList::copy_block(values.data(), values.size()), values.size()) {}
    const complex_t& operator[](std::size_t k) const { return block_.get()[k]; }
    const complex_t* begin() const { return block_.get(); }
    const complex_t* end() const { return begin() + size_; }

  private:
    Block block_;
    std::size_t size_ = 0;
};

// One operator of a list, apart from it: scheduling changes operators.
struct TileOp {
    Kind kind;
    std::vector<int> targets, controls;
    index_t ctrl_state = 0;
    Numbers data;
    std::vector<std::uint32_t> permutation;

    index_t mixed = 0;  // qubits whose value it changes
    index_t used = 0;   // all its qubits
    index_t z = 0;      // of a Pauli: qubits with Y or Z
};

inline bool is_trivial(const Numbers& phases) {
    return std::all_of(phases.begin(), phases.end(), [](complex_t z) { return z == 1.0; });
}

template <class Real>
class TileCompiler {
  public:
    // `tile`: ascending qubits, the lane_bits - 1 lowest among them, at least lane_bits in number.
    TileCompiler(int num_qubits, std::vector<int> tile, int lane_bits, int block_bits);
    void add(TileOp op);
    TileProgram<Real> finish();

  private:
    struct Rotation {  // y0 = own0 x0 + other0 x1, y1 = other1 x0 + own1 x1; other is imaginary or real
        double own0, other0, other1, own1;
        bool imaginary;
        int position;
    };

    struct PauliGroup {  // rotations of one direction that commute
        std::vector<const TileOp*> rotations;
        std::vector<index_t> basis;  // of the differences of their z from that of the first; each is reduced by those before it
        index_t used;
    };

    void expand(TileOp op);
    bool as_rotation(const TileOp& op, Rotation& rotation) const;
    bool is_swap(const TileOp& op) const;
    bool emit_round(bool diagonals);
    void emit_rotations(std::vector<Rotation>& rotations);
    void emit_lanes(const std::vector<Rotation>& rotations, bool imaginary);
    void emit_vertical(const std::vector<Rotation>& rotations, std::size_t begin, std::size_t end);
    void emit_diagonals(const std::vector<const TileOp*>& diagonals);
    void emit_phase(const std::vector<const TileOp*>& diagonals);
    void emit_parities(const std::vector<const TileOp*>& parities);
    bool fits_tables(const TileOp& parity) const;
    bool join_group(std::vector<PauliGroup>& groups, const TileOp& op, index_t& rotating) const;
    void emit_paulis(const PauliGroup& group);
    Sweep parity_sweep(SweepType type, const std::vector<index_t>& masks);
    index_t positions(index_t qubits) const;
    void emit_other(const TileOp& op);
    void emit_lane_dense(const TileOp& op);
    void emit_dense_any(const TileOp& op);
    void emit_gather(const TileOp& op);
    void free_lanes(const TileOp& op);
    void swap_lane(int lane, int vertical);
    void restore_lanes();
    int idle_vertical(const TileOp& op) const;
    Controls controls_of(const TileOp& op, bool any_position) const;
    Sweep sweep_on(SweepType type, const TileOp& op, bool any_position) const;
    bool is_local(const Sweep& sweep) const;
    void push(Sweep sweep);
    std::uint32_t push_data(const std::vector<double>& values);
    std::vector<index_t> offsets() const;
    complex_t matrix_entry(const TileOp& op, index_t row, index_t column) const;

    TileProgram<Real> program_;
    std::vector<int> position_;  // of each qubit, -1 outside the tile
    std::vector<int> qubit_;     // at each position
    std::vector<TileOp> ops_;
    std::vector<std::size_t> remaining_;  // from first_ on: numbers of ops not yet emitted, in order
    std::size_t first_ = 0;
    index_t tile_mask_ = 0;
    complex_t scale_ = 1;
};

// Sorts diagonals by the positions they touch and writes the tables (phase_tables.cpp).
template <class Real>
Phase compile_phase(TileProgram<Real>& program, const std::vector<int>& position, const std::vector<const TileOp*>& diagonals,
                    complex_t scale);

}  // namespace qsim
