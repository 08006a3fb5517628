// ozaki/residues.cu -- from columns of a state, at any target qubits, to the INT8 operand of the product.
// Arrays     state, row_offset, column_offset, records as in scale.cu; operand int8 [plane][K / 128][row_stride][128], as ozaki.cuh
//            says; places uint64: (offset in the state, place in a tile) of 256 threads, then of kGatherSteps iterations
// Launch     one block of 256 threads per kGatherColumns columns and 128 rows, columns fastest
// Work       16 B read and 2 B a modulus written an amplitude; about 10 instructions an amplitude and modulus: bound by both
// Exactness  amplitudes are rounded once, to integers; residues are exact
#include "ozaki/ozaki.cuh"

extern "C" __global__ void __launch_bounds__(256, 5)
ozaki_residues(const amp_t* __restrict__ state, const index_t* __restrict__ places, const index_t* __restrict__ column_offset,
               const index_t* __restrict__ row_offset, const ColumnRecord* __restrict__ records, signed char* __restrict__ operand,
               const __grid_constant__ Columns columns, const __grid_constant__ Scheme scheme) {
    __shared__ __align__(16) double2 tile[kGatherColumns * (kDepth + 1)];  // [column][row], one row of padding a column
    __shared__ int lane_words[kLaneWords];
    fill_lane_words(lane_words, scheme);
    const int warp = threadIdx.x >> 5;
    const unsigned groups = (unsigned)(columns.num_columns / kGatherColumns);
    const index_t first = (index_t)(blockIdx.x % groups) * kGatherColumns;
    const int block = (int)(blockIdx.x / groups);
    const index_t base = columns.base | __ldg(column_offset + first) | __ldg(row_offset + block * kDepth);
    const amp_t* from = state + base + __ldg(places + 2 * threadIdx.x);
    const int thread_place = (int)__ldg(places + 2 * threadIdx.x + 1);
#pragma unroll
    for (int i = 0; i < kGatherSteps; ++i) {
        const int place = thread_place | (int)__ldg(places + 512 + 2 * i + 1);
        copy_async(tile + place + (place >> 7), from + __ldg(places + 512 + 2 * i));
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();
#pragma unroll 1
    for (int c = warp; c < kGatherColumns; c += 8) {
        const index_t column = first + c;
        double2* const rows = tile + c * (kDepth + 1);
        make_integers(rows, __ldg(&records[column].exponent), scheme);
        const unsigned row = ((unsigned)column & ~63u) | operand_row((int)column & 63);
        const unsigned at = (block * columns.row_stride + row) * kDepth;
        write_residues(reinterpret_cast<const uint4*>(rows), lane_words, operand, at, (int)row, columns.plane_bytes, scheme);
    }
}
