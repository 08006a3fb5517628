// cpu/tile/run.cpp -- hands the tiles of a state to threads, which run the kernels of this machine's instruction set.
#include "cpu/tile/run.hpp"

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "cpu/dispatch/kernel_table.hpp"

namespace qsim {

namespace {

template <class Real>
void run_range(const TileView<Real>& view, Real* state, index_t begin, index_t end, Real* scratch);
template <>
void run_range(const TileView<double>& view, double* state, index_t begin, index_t end, double* scratch) {
    tile_kernels().run_double(view, state, begin, end, scratch);
}
template <>
void run_range(const TileView<float>& view, float* state, index_t begin, index_t end, float* scratch) {
    tile_kernels().run_single(view, state, begin, end, scratch);
}

// Page numbers of a tile at base 0: all patterns of its qubits above a page.
template <class Real>
std::vector<index_t> tile_pages(const TileProgram<Real>& program, int page_bits) {
    std::vector<int> above;
    for (int q : program.tile)
        if (q >= page_bits) above.push_back(q - page_bits);
    std::vector<index_t> out(index_t{1} << above.size());
    for (index_t k = 0; k < out.size(); ++k) out[k] = deposit(k, above.data(), static_cast<int>(above.size()));
    return out;
}

// The program as the kernels read it; `inside` are its tile_pages().
template <class Real>
TileView<Real> view_of(const TileProgram<Real>& program, const PageView& pages, int page_bits, const std::vector<index_t>& inside,
                       bool prefetch) {
    return {program.num_tile, program.lane_bits, program.low_bits, program.block_bits,
            program.scale.real(), program.scale.imag(),
            program.outer.data(), static_cast<int>(program.outer.size()), program.fixed,
            program.sweeps.data(), static_cast<int>(program.sweeps.size()),
            program.phases.data(), program.terms.data(), program.data.data(), program.tables.data(),
            program.indices.data(), program.gather.data(), program.scatter.data(), pages, page_bits, inside.data(),
            static_cast<int>(inside.size()), prefetch};
}

// Numbers of one thread's scratch.
template <class Real>
std::size_t scratch_room(const TileProgram<Real>& program) {
    const std::size_t tile = std::size_t{2} << program.num_tile;
    const std::size_t phases = kGroupPhases * phase_room(program.num_tile, program.low_bits);
    const std::size_t columns = std::size_t{1} << program.max_dense;  // of the largest matrix: offsets and two copied columns
    const std::size_t copies = columns * (3 * sizeof(index_t) / sizeof(Real) + 4 * (std::size_t{1} << program.lane_bits)) + 64;
    return (tile + phases + copies + 63) / 64 * 64;
}

template <class Real>
constexpr int kPageAmpBits = kPageBits - (sizeof(Real) == 8 ? 4 : 3);

}  // namespace

template <class Real>
void run_program(const TileProgram<Real>& program, Real* state, const PageView& pages, int threads, bool prefetch) {
    const int page_bits = kPageAmpBits<Real>;
    const std::vector<index_t> inside = pages.flags ? tile_pages(program, page_bits) : std::vector<index_t>();
    const TileView<Real> view = view_of(program, pages, page_bits, inside, prefetch);
    const std::size_t room = scratch_room(program);
    const index_t tiles = index_t{1} << program.outer.size();
    const index_t chunk = std::max<index_t>(1, std::min<index_t>(16, tiles / (8 * std::max(threads, 1))));
    AlignedVector<Real> scratch(room * std::max(threads, 1));
    parallel_chunks((tiles + chunk - 1) / chunk, threads, [&](index_t number, int thread) {
        run_range(view, state, number * chunk, std::min(tiles, (number + 1) * chunk), scratch.data() + room * thread);
    });
}

template <class Real>
void run_program(const TileProgram<Real>& program, Real* state, const PageView& pages, AlignedVector<Real>& scratch) {
    const int page_bits = kPageAmpBits<Real>;
    const std::vector<index_t> inside = pages.flags ? tile_pages(program, page_bits) : std::vector<index_t>();
    const std::size_t room = scratch_room(program);
    if (scratch.size() < room) scratch.resize(room);
    run_range(view_of(program, pages, page_bits, inside, false), state, 0, index_t{1} << program.outer.size(), scratch.data());
}

template void run_program(const TileProgram<double>&, double*, const PageView&, int, bool);
template void run_program(const TileProgram<float>&, float*, const PageView&, int, bool);
template void run_program(const TileProgram<double>&, double*, const PageView&, AlignedVector<double>&);
template void run_program(const TileProgram<float>&, float*, const PageView&, AlignedVector<float>&);

}  // namespace qsim
