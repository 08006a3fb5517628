// bind/module.cpp -- the Python face of the CPU kernels: State and TileProgram. The GIL is released while they work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/parallel.hpp"
#include "bind/bind.hpp"
#include "bind/ozaki.hpp"
#include "cpu/state/buffer.hpp"
#include "cpu/state/measure.hpp"
#include "cpu/state/pages.hpp"
#include "cpu/tile/compile.hpp"
#include "cpu/tile/run.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using qsim::index_t;
using qsim::ComplexIn;
using qsim::make_array;
using qsim::RealIn;

constexpr int kPaddedQubits = 5;            // a state fills at least one vector register of any instruction set
constexpr std::size_t kPrefetchBytes = std::size_t{24} << 20;  // larger states do not stay in a last-level cache
constexpr int kBlockBitsDouble = 10;        // 16 KiB of amplitudes: half a first-level cache

// Either precision behind one type; `call` is given the amplitudes as std::complex<float or double>*.
class State {
  public:
    State(int num_qubits, bool single)
        : num_qubits_(num_qubits), single_(single),
          buffer_(std::make_shared<qsim::Buffer>((std::size_t{1} << padded_qubits()) * (single ? 8 : 16))),
          pages_(static_cast<char*>(data()), buffer_->bytes(), buffer_->recycled()) {
        if (single) *static_cast<float*>(data()) = 1;
        else *static_cast<double*>(data()) = 1;
    }

    int num_qubits() const { return num_qubits_; }
    int padded_qubits() const { return std::max(num_qubits_, kPaddedQubits); }
    bool single() const { return single_; }
    void* data() const { return buffer_->data(); }
    std::size_t bytes() const { return (std::size_t{1} << num_qubits_) * (single_ ? 8 : 16); }
    const std::shared_ptr<qsim::Buffer>& buffer() const { return buffer_; }

    qsim::PageView pages() const { return pages_.view(); }

    // Every amplitude is in memory from here on: whoever looks at the memory itself, or writes it, says so.
    void settle(int threads) {
        const qsim::PageView view = pages();
        if (view.flags && view.recycled)
            qsim::parallel_chunks(pages_.size(), threads, [&](index_t page, int) { view.open(page); });
        pages_.mark_all();
    }
    void overwrite() { pages_.mark_all(); }

    template <class Call>
    auto visit(Call&& call) const {
        return single_ ? call(static_cast<std::complex<float>*>(data())) : call(static_cast<std::complex<double>*>(data()));
    }

  private:
    int num_qubits_;
    bool single_;
    std::shared_ptr<qsim::Buffer> buffer_;
    qsim::Pages pages_;
};

class Program {
  public:
    // `zero_qubits` and `one_qubits` outside the tile are known to be |0> and |1>: tiles where one reads otherwise are left alone.
    Program(int num_qubits, std::vector<int> qubits, std::vector<int> zero_qubits, std::vector<int> one_qubits, bool single)
        : num_qubits_(std::max(num_qubits, kPaddedQubits)), qubits_(std::move(qubits)), zero_qubits_(std::move(zero_qubits)),
          one_qubits_(std::move(one_qubits)), single_(single) {
        for (int q = num_qubits; q < num_qubits_; ++q) zero_qubits_.push_back(q);
    }

    void add(const qsim::OpList& ops) {
        for (std::size_t k = 0; k < ops.size(); ++k) {
            const qsim::OpHead& head = ops[k];
            qsim::TileOp op{head.kind, {}, {}, 0, {}, {}, 0, 0};
            op.targets.assign(ops.targets(head), ops.controls(head));
            for (int j = 0; j < head.num_controls; ++j) {
                const std::int32_t entry = ops.controls(head)[j];
                op.controls.push_back(qsim::OpList::control_qubit(entry));
                op.ctrl_state |= index_t(qsim::OpList::control_value(entry)) << j;
            }
            op.data = qsim::Numbers(ops.block(head), head.num_data);
            if (op.kind == qsim::Kind::kPermutation) op.permutation.assign(ops.permutation(head), ops.permutation(head) + head.num_data);
            check(op);
            ops_.push_back(std::move(op));
        }
    }

    void finish() {
        if (double_ || float_) return;
        if (single_) float_ = compile<float>();
        else double_ = compile<double>();
        ops_.clear();
    }

    void run(State& state, int threads) {
        finish();
        if (state.single() != single_ || state.padded_qubits() != num_qubits_)
            throw std::invalid_argument("a program runs on states of its own width and precision");
        const bool prefetch = state.bytes() >= kPrefetchBytes;
        if (single_) qsim::run_program(*float_, static_cast<float*>(state.data()), state.pages(), threads, prefetch);
        else qsim::run_program(*double_, static_cast<double*>(state.data()), state.pages(), threads, prefetch);
    }

    std::vector<int> sweep_types() {
        finish();
        std::vector<int> out;
        for (const auto& sweep : single_ ? float_->sweeps : double_->sweeps) out.push_back(static_cast<int>(sweep.type));
        return out;
    }

  private:
    static bool among(const std::vector<int>& qubits, int q) { return std::find(qubits.begin(), qubits.end(), q) != qubits.end(); }

    void check(const qsim::TileOp& op) {
        const auto in_state = [&](int q) { return q >= 0 && q < num_qubits_; };
        if (!std::all_of(op.targets.begin(), op.targets.end(), in_state) || !std::all_of(op.controls.begin(), op.controls.end(), in_state))
            throw std::invalid_argument("an operator acts outside the state");
        const bool diagonal = op.kind == qsim::Kind::kDiagonal;
        if (!diagonal && op.kind != qsim::Kind::kHadamard) largest_ = std::max(largest_, static_cast<int>(op.targets.size()));
        for (int q : op.targets)
            if (!diagonal && std::find(qubits_.begin(), qubits_.end(), q) == qubits_.end())
                throw std::invalid_argument("an operator mixes a qubit outside the tile");
        const std::size_t limit = diagonal ? qsim::kMaxDiagonal : qsim::kMaxOpQubits;
        if (op.targets.size() > limit) throw std::invalid_argument("an operator has more than " + std::to_string(limit) + " targets");
    }

    template <class Real>
    std::unique_ptr<qsim::TileProgram<Real>> compile() {
        const int lanes = qsim::lane_bits(single_);
        std::vector<bool> inside(num_qubits_, false);
        for (int q : qubits_) inside[q] = true;
        for (int q = 0; q + 1 < lanes; ++q) inside[q] = true;
        // room beside the largest matrix for the lanes and two columns: lowest qubits first, but those that read one value last
        const int wanted = std::min(num_qubits_, std::max<int>(qubits_.size(), std::max(lanes, largest_ ? largest_ + lanes + 1 : 0)));
        int count = static_cast<int>(std::count(inside.begin(), inside.end(), true));
        for (const bool fixed : {false, true})
            for (int q = 0; q < num_qubits_ && count < wanted; ++q)
                if (!inside[q] && (among(zero_qubits_, q) || among(one_qubits_, q)) == fixed) inside[q] = true, ++count;
        std::vector<int> tile;
        for (int q = 0; q < num_qubits_; ++q)
            if (inside[q]) tile.push_back(q);
        if (static_cast<int>(tile.size()) > qsim::kMaxTile) throw std::invalid_argument("a tile has more than 20 qubits");
        qsim::TileCompiler<Real> compiler(num_qubits_, tile, lanes, kBlockBitsDouble + (single_ ? 1 : 0));
        for (auto& op : ops_) compiler.add(std::move(op));
        auto program = std::make_unique<qsim::TileProgram<Real>>(compiler.finish());
        std::vector<int> outer;
        for (int q : program->outer) {
            if (among(one_qubits_, q)) program->fixed |= index_t{1} << q;
            else if (!among(zero_qubits_, q)) outer.push_back(q);
        }
        program->outer = std::move(outer);
        return program;
    }

    int num_qubits_;
    std::vector<int> qubits_, zero_qubits_, one_qubits_;
    bool single_;
    int largest_ = 0;
    std::vector<qsim::TileOp> ops_;
    std::unique_ptr<qsim::TileProgram<double>> double_;
    std::unique_ptr<qsim::TileProgram<float>> float_;
};

// A view of the amplitudes; it keeps the memory alive, not the State.
template <class Real>
nb::object view(const State& state) {
    auto* keep = new std::shared_ptr<qsim::Buffer>(state.buffer());
    nb::capsule owner(keep, [](void* p) noexcept { delete static_cast<std::shared_ptr<qsim::Buffer>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::complex<Real>, nb::ndim<1>>(
        state.data(), {std::size_t{1} << state.num_qubits()}, owner));
}

void copy_amplitudes(State& state, State& from, int threads) {
    if (state.bytes() != from.bytes()) throw std::invalid_argument("states differ in width or precision");
    const std::size_t chunk = std::size_t{1} << 20, bytes = from.bytes();
    nb::gil_scoped_release release;
    state.overwrite();
    from.settle(threads);
    qsim::parallel_chunks((bytes + chunk - 1) / chunk, threads, [&](index_t number, int) {
        const std::size_t at = number * chunk;
        std::memcpy(static_cast<char*>(state.data()) + at, static_cast<char*>(from.data()) + at, std::min(chunk, bytes - at));
    });
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "CPU kernels: states and tile programs.";
    m.def("isa", [] { return std::string(qsim::tile_kernels().name); }, "Name of the instruction set the kernels use.");

    m.def("release_kept_buffer", &qsim::release_kept_buffer, "Gives the memory kept for the next state back; returns its bytes.");

    qsim::bind_angles(m);
    qsim::bind_ops(m);
    qsim::bind_outcomes(m);
    qsim::bind_stages(m);
    qsim::bind_stacks(m);

    nb::class_<State>(m, "State")
        .def(nb::init<int, bool>(), "num_qubits"_a, "single"_a)
        .def_prop_ro("num_qubits", &State::num_qubits)
        .def_prop_ro("single", &State::single)
        .def("vector", [](State& s, int threads) {
            {
                nb::gil_scoped_release release;
                s.settle(threads);
            }
            return s.single() ? view<float>(s) : view<double>(s);
        }, "threads"_a = 1)
        .def("copy_from", &copy_amplitudes, "other"_a, "threads"_a)
        .def("prepare", [](State& s, ComplexIn factors, int threads) {
            if (factors.size() != 2 * static_cast<std::size_t>(s.num_qubits()))
                throw std::invalid_argument("two factors per qubit are needed");
            nb::gil_scoped_release release;
            s.visit([&](auto* amps) { qsim::prepare_product(amps, s.num_qubits(), factors.data(), s.pages(), threads); });
        }, "factors"_a, "threads"_a)
        .def("norm", [](State& s, int threads) {
            nb::gil_scoped_release release;
            s.settle(threads);
            return s.visit([&](auto* amps) { return qsim::norm_squared(amps, s.num_qubits(), threads); });
        }, "threads"_a)
        .def("probabilities", [](State& s, std::vector<int> qubits, int threads) {
            auto out = make_array<double>(std::size_t{1} << qubits.size());
            {
                nb::gil_scoped_release release;
                s.settle(threads);
                s.visit([&](auto* amps) { qsim::marginal_probabilities(amps, s.num_qubits(), qubits, out.data(), threads); });
            }
            return out;
        }, "qubits"_a, "threads"_a)
        .def("sample", [](State& s, RealIn uniforms, int threads) {
            auto out = make_array<std::int64_t>(uniforms.size());
            {
                nb::gil_scoped_release release;
                s.settle(threads);
                s.visit([&](auto* amps) {
                    qsim::sample_states(amps, s.num_qubits(), uniforms.data(), uniforms.size(), out.data(), threads);
                });
            }
            return out;
        }, "uniforms"_a, "threads"_a)
        .def("collapse", [](State& s, qsim::index_t mask, qsim::index_t wanted, double scale, int threads) {
            nb::gil_scoped_release release;
            s.settle(threads);
            s.visit([&](auto* amps) { qsim::collapse(amps, s.num_qubits(), mask, wanted, scale, threads); });
        }, "mask"_a, "wanted"_a, "scale"_a, "threads"_a);

    nb::class_<Program>(m, "TileProgram")
        .def(nb::init<int, std::vector<int>, std::vector<int>, std::vector<int>, bool>(), "num_qubits"_a, "qubits"_a, "zero_qubits"_a,
             "one_qubits"_a, "single"_a)
        .def("add", &Program::add, "ops"_a)
        .def("finish", &Program::finish, nb::call_guard<nb::gil_scoped_release>())
        .def("run", &Program::run, "state"_a, "threads"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("sweep_types", &Program::sweep_types);
    qsim::bind_ozaki(m);
}
