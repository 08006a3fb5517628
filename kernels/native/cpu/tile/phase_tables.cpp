// cpu/tile/phase_tables.cpp -- sorts diagonals by where their qubits lie and builds the static tables of a phase sweep.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cpu/tile/compile.hpp"

namespace qsim {

namespace {

constexpr int kExpandedQubits = 8;        // controls join the table up to this many qubits
constexpr std::size_t kMergeFrom = 64;    // diagonals of one sweep: fewer rarely meet twice

// A diagonal as a table over positions (low index bits) and outer qubits (high index bits).
struct Term {
    std::vector<int> inner, outer;
    std::vector<int> inner_controls;
    std::vector<int> inner_values;
    index_t outer_mask = 0, outer_value = 0;
    std::vector<complex_t> table;
};

Term make_term(const TileOp& op, const std::vector<int>& position) {
    Term term;
    const bool expand = op.targets.size() + op.controls.size() <= kExpandedQubits;
    std::vector<int> qubits = op.targets;
    if (expand) qubits.insert(qubits.end(), op.controls.begin(), op.controls.end());
    for (int q : qubits) (position[q] >= 0 ? term.inner : term.outer).push_back(position[q] >= 0 ? position[q] : q);
    std::sort(term.inner.begin(), term.inner.end());
    if (!expand)
        for (std::size_t j = 0; j < op.controls.size(); ++j) {
            const int q = op.controls[j], value = static_cast<int>(op.ctrl_state >> j & 1);
            if (position[q] >= 0) {
                term.inner_controls.push_back(position[q]);
                term.inner_values.push_back(value);
            } else {
                term.outer_mask |= index_t{1} << q;
                term.outer_value |= static_cast<index_t>(value) << q;
            }
        }
    // bit of the operator's index (targets, then controls) that each bit of the table's index holds
    const std::size_t count = qubits.size();
    std::vector<int> source(count);
    for (std::size_t j = 0; j < count; ++j) {
        const int p = position[qubits[j]];
        const auto& list = p >= 0 ? term.inner : term.outer;
        const auto at = std::find(list.begin(), list.end(), p >= 0 ? p : qubits[j]) - list.begin();
        source[(p >= 0 ? 0 : term.inner.size()) + at] = static_cast<int>(j);
    }
    term.table.resize(index_t{1} << count);
    for (index_t i = 0; i < term.table.size(); ++i) {
        const index_t index = deposit(i, source.data(), static_cast<int>(count));
        const index_t control_bits = index >> op.targets.size();
        const bool active = !expand || control_bits == op.ctrl_state;
        term.table[i] = active ? op.data[index & ((index_t{1} << op.targets.size()) - 1)] : complex_t(1);
    }
    return term;
}

// The terms of many diagonals: those on the same qubits are multiplied together, for each costs a walk over the tables.
std::vector<Term> make_terms(const std::vector<const TileOp*>& diagonals, const std::vector<int>& position) {
    std::vector<Term> terms;
    std::map<std::tuple<std::vector<int>, std::vector<int>, std::vector<int>, std::vector<int>, index_t, index_t>, std::size_t> known;
    for (const TileOp* op : diagonals) {
        Term term = make_term(*op, position);
        if (diagonals.size() >= kMergeFrom) {
            const auto [at, is_new] = known.try_emplace(
                {term.inner, term.outer, term.inner_controls, term.inner_values, term.outer_mask, term.outer_value}, terms.size());
            if (!is_new) {
                std::vector<complex_t>& table = terms[at->second].table;
                for (std::size_t i = 0; i < table.size(); ++i) table[i] *= term.table[i];
                continue;
            }
        }
        terms.push_back(std::move(term));
    }
    return terms;
}

template <class Real>
std::uint32_t push_complex(AlignedVector<Real>& tables, const std::vector<complex_t>& values) {
    const auto begin = static_cast<std::uint32_t>(align_end(tables) / 2);
    for (auto z : values) tables.push_back(static_cast<Real>(z.real())), tables.push_back(static_cast<Real>(z.imag()));
    return begin;
}

// W real parts, then W imaginary parts, and so on.
template <class Real>
std::uint32_t push_vectors(AlignedVector<Real>& tables, const std::vector<complex_t>& values, int lane_bits) {
    const auto begin = static_cast<std::uint32_t>(align_end(tables) / 2);
    const std::size_t W = std::size_t{1} << lane_bits;
    for (std::size_t v = 0; v < values.size(); v += W) {
        for (std::size_t lane = 0; lane < W; ++lane) tables.push_back(static_cast<Real>(values[v + lane].real()));
        for (std::size_t lane = 0; lane < W; ++lane) tables.push_back(static_cast<Real>(values[v + lane].imag()));
    }
    return begin;
}

template <class Real>
void push_term(TileProgram<Real>& program, const Term& term, bool slow) {
    PhaseTerm out{};
    out.outer_mask = term.outer_mask, out.outer_value = term.outer_value;
    out.num_outer = static_cast<std::uint8_t>(term.outer.size());
    out.num_inner = static_cast<std::uint8_t>(term.inner.size());
    std::copy(term.outer.begin(), term.outer.end(), out.outer);
    std::copy(term.inner.begin(), term.inner.end(), out.inner);
    out.table = push_complex(program.tables, term.table);
    if (slow) {
        out.inner_index = static_cast<std::uint32_t>(program.indices.size());
        for (index_t i = 0; i < index_t{1} << program.num_tile; ++i) {
            bool active = true;
            for (std::size_t j = 0; j < term.inner_controls.size(); ++j)
                active = active && bit(i, term.inner_controls[j]) == term.inner_values[j];
            program.indices.push_back(
                active ? static_cast<std::uint32_t>(extract(i, term.inner.data(), static_cast<int>(term.inner.size()))) : ~0u);
        }
    }
    program.terms.push_back(out);
}

enum class Place { kScalar, kLinear, kPart, kSlow, kLow, kHigh, kMixed };

Place place_of(const Term& term, int low_bits) {
    const bool is_static = term.outer.empty() && term.outer_mask == 0;
    if (!term.inner_controls.empty()) return Place::kSlow;
    if (term.inner.empty()) return is_static ? Place::kHigh : Place::kScalar;
    const bool low = term.inner.back() < low_bits, high = term.inner.front() >= low_bits;
    if (is_static) return low ? Place::kLow : high ? Place::kHigh : Place::kMixed;
    if (term.inner.size() == 1) return Place::kLinear;
    return low || high ? Place::kPart : Place::kSlow;
}

}  // namespace

template <class Real>
Phase compile_phase(TileProgram<Real>& program, const std::vector<int>& position, const std::vector<const TileOp*>& diagonals,
                    complex_t scale) {
    Phase phase;
    const int low_bits = program.low_bits, high_bits = program.num_tile - low_bits;
    std::vector<std::pair<Place, Term>> terms;
    std::set<int> coupled;  // high positions that some static term couples to low ones
    for (Term& term : make_terms(diagonals, position)) {
        const Place place = place_of(term, low_bits);
        if (place == Place::kMixed)
            for (int p : term.inner)
                if (p >= low_bits) coupled.insert(p);
        terms.emplace_back(place, std::move(term));
    }
    phase.has_full = coupled.size() > kMaxVariants;
    std::vector<int> variants;
    if (!phase.has_full) variants.assign(coupled.begin(), coupled.end());
    phase.num_variants = static_cast<std::uint8_t>(variants.size());
    for (std::size_t j = 0; j < variants.size(); ++j) phase.variant[j] = static_cast<std::uint8_t>(variants[j] - low_bits);

    std::vector<complex_t> low(index_t{1} << (low_bits + variants.size()), scale), high(index_t{1} << high_bits, 1.0);
    std::vector<complex_t> full(phase.has_full ? index_t{1} << program.num_tile : 0, 1.0);
    for (const auto& [place, term] : terms) {
        const int count = static_cast<int>(term.inner.size());
        if (place == Place::kHigh)
            for (index_t i = 0; i < high.size(); ++i) high[i] *= term.table[extract(i << low_bits, term.inner.data(), count)];
        if (place == Place::kMixed && phase.has_full)
            for (index_t i = 0; i < full.size(); ++i) full[i] *= term.table[extract(i, term.inner.data(), count)];
        if (place == Place::kLow || (place == Place::kMixed && !phase.has_full))
            for (index_t i = 0; i < low.size(); ++i) {
                const index_t variant = deposit(i >> low_bits, variants.data(), static_cast<int>(variants.size()));
                const index_t index = (i & ((index_t{1} << low_bits) - 1)) | variant;
                low[i] *= term.table[extract(index, term.inner.data(), count)];
            }
    }
    phase.low = push_vectors(program.tables, low, program.lane_bits);
    phase.high = push_complex(program.tables, high);
    if (phase.has_full) phase.full = push_vectors(program.tables, full, program.lane_bits);

    auto push_all = [&](Place wanted, std::uint32_t& begin, std::uint32_t& end) {
        begin = static_cast<std::uint32_t>(program.terms.size());
        for (const auto& [place, term] : terms)
            if (place == wanted) push_term(program, term, wanted == Place::kSlow);
        end = static_cast<std::uint32_t>(program.terms.size());
    };
    push_all(Place::kScalar, phase.scalar_begin, phase.scalar_end);
    push_all(Place::kLinear, phase.linear_begin, phase.linear_end);
    push_all(Place::kPart, phase.part_begin, phase.part_end);
    push_all(Place::kSlow, phase.slow_begin, phase.slow_end);
    return phase;
}

template Phase compile_phase(TileProgram<double>&, const std::vector<int>&, const std::vector<const TileOp*>&, complex_t);
template Phase compile_phase(TileProgram<float>&, const std::vector<int>&, const std::vector<const TileOp*>&, complex_t);

}  // namespace qsim
