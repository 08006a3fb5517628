// ir/op_list.cpp -- columns of operators.
#include "ir/op_list.hpp"

#include <map>
#include <stdexcept>

namespace qsim {

namespace {

struct Names {  // read and written with the GIL held
    std::map<std::string, std::uint16_t> number;
    std::vector<const std::string*> name;
};

Names& names() {
    static Names all;
    return all;
}

constexpr std::size_t kMaxNames = 60000;  // a program that makes up ever new names shares one from here on

}  // namespace

std::uint16_t intern_name(const std::string& name) {
    Names& all = names();
    const auto known = all.number.find(name);
    if (known != all.number.end()) return known->second;
    if (all.name.size() >= kMaxNames && name != "gate") return intern_name("gate");
    const auto at = all.number.emplace(name, static_cast<std::uint16_t>(all.name.size())).first;
    all.name.push_back(&at->first);
    return at->second;
}

const std::string& interned_name(std::uint16_t number) { return *names().name[number]; }

index_t OpList::target_mask(const OpHead& op) const {
    index_t out = 0;
    for (int j = 0; j < op.num_targets; ++j) out |= index_t{1} << targets(op)[j];
    return out;
}

index_t OpList::mixed(const OpHead& op) const {
    if (is_diagonal(op.kind)) return 0;
    if (op.kind != Kind::kPauli) return target_mask(op);
    index_t out = 0;
    for (int j = 0; j < op.num_targets; ++j) out |= index_t{letters(op)[j] != kLetterZ} << targets(op)[j];
    return out;
}

index_t OpList::used(const OpHead& op) const {
    index_t out = target_mask(op);
    for (int j = 0; j < op.num_controls; ++j) out |= index_t{1} << control_qubit(controls(op)[j]);
    return out;
}

Block OpList::copy_block(const complex_t* data, std::size_t count) {
    auto numbers = std::make_shared<std::vector<complex_t>>(data, data + count);
    return Block(numbers, numbers->data());
}

void OpList::append(Kind kind, const std::int32_t* qubits, std::size_t num_targets, std::size_t num_controls,
                    const complex_t* data, std::size_t num_data, const std::uint32_t* permutation, std::uint16_t name, Block block) {
    OpHead op{kind, static_cast<std::uint8_t>(num_targets), static_cast<std::uint16_t>(num_controls), name,
              static_cast<std::uint32_t>(qubits_.size()), static_cast<std::uint32_t>(num_data), data_.size(), permutations_.size()};
    qubits_.insert(qubits_.end(), qubits, qubits + num_targets + num_controls);
    if (is_shared(op)) {
        op.data = blocks_.size();
        blocks_.push_back(block ? std::move(block) : copy_block(data, num_data));
    } else {
        data_.insert(data_.end(), data, data + num_data);
    }
    permutations_.insert(permutations_.end(), permutation, permutation + num_places(op));
    heads_.push_back(op);
}

void OpList::append(const OpList& from, const OpHead& op) {
    append(op.kind, from.targets(op), op.num_targets, op.num_controls, from.data(op), op.num_data, from.permutation(op), op.name,
           is_shared(op) ? from.blocks_[op.data] : nullptr);
    heads_.back().origin = op.origin;
}

void OpList::append(const OpList& from) {
    const auto first_qubit = static_cast<std::uint32_t>(qubits_.size());
    const std::uint64_t first_data = data_.size(), first_block = blocks_.size(), first_permutation = permutations_.size();
    heads_.reserve(heads_.size() + from.size());
    for (OpHead op : from.heads_) {
        op.qubits += first_qubit, op.permutation += first_permutation;
        op.data += is_shared(op) ? first_block : first_data;
        heads_.push_back(op);
    }
    qubits_.insert(qubits_.end(), from.qubits_.begin(), from.qubits_.end());
    data_.insert(data_.end(), from.data_.begin(), from.data_.end());
    blocks_.insert(blocks_.end(), from.blocks_.begin(), from.blocks_.end());
    permutations_.insert(permutations_.end(), from.permutations_.begin(), from.permutations_.end());
}

void OpList::number() {
    for (std::size_t k = 0; k < heads_.size(); ++k) heads_[k].origin = static_cast<std::uint32_t>(k);
}

OpList OpList::with_data(const OpList& from) const {
    OpList out = *this;
    for (const OpHead& op : out.heads_) {
        if (op.origin >= from.size() || from[op.origin].num_data != op.num_data)
            throw std::invalid_argument("operators of another structure");
        const OpHead& source = from[op.origin];
        if (is_shared(op)) out.blocks_[op.data] = from.blocks_[source.data];
        else std::copy_n(from.data(source), op.num_data, out.own_data(op));
    }
    return out;
}

void OpList::reserve(std::size_t ops, std::size_t qubits, std::size_t data) {
    heads_.reserve(ops);
    qubits_.reserve(qubits);
    data_.reserve(data);
}

std::vector<int> OpList::touched_qubits(bool all) const {
    std::vector<bool> seen;
    const auto see = [&](int q) {
        if (static_cast<std::size_t>(q) >= seen.size()) seen.resize(q + 1);
        seen[q] = true;
    };
    for (const OpHead& op : heads_) {
        for (int j = 0; j < op.num_targets; ++j)
            if (all || (!is_diagonal(op.kind) && !(op.kind == Kind::kPauli && letters(op)[j] == kLetterZ))) see(targets(op)[j]);
        for (int j = 0; all && j < op.num_controls; ++j) see(control_qubit(controls(op)[j]));
    }
    std::vector<int> out;
    for (std::size_t q = 0; q < seen.size(); ++q)
        if (seen[q]) out.push_back(static_cast<int>(q));
    return out;
}

std::uint32_t GateTable::add(Kind kind, int num_targets, int num_controls, std::uint32_t num_values, std::vector<complex_t> values,
                             std::vector<std::uint32_t> permutation, const std::string& name) {
    rows_.push_back({kind, num_targets, num_controls, num_values, std::move(values), std::move(permutation), intern_name(name)});
    return static_cast<std::uint32_t>(rows_.size() - 1);
}

void GateTable::append_to(OpList& list, const std::vector<std::uint32_t>& rows, const std::vector<std::int32_t>& qubits,
                          const complex_t* values, std::size_t num_values) const {
    std::size_t at = 0, value = 0;
    std::vector<std::int32_t> entries;
    for (const std::uint32_t number : rows) {
        const Row& row = rows_.at(number);
        const std::size_t count = row.num_targets + row.num_controls;
        if (at + count > qubits.size() || value + row.num_values > num_values) throw std::invalid_argument("too few qubits or values");
        entries.assign(qubits.begin() + at + row.num_controls, qubits.begin() + at + count);
        for (int j = 0; j < row.num_controls; ++j) entries.push_back(qubits[at + j] | kControlOne);
        const bool has_values = row.num_values > 0;
        list.append(row.kind, entries.data(), row.num_targets, row.num_controls, has_values ? values + value : row.values.data(),
                    has_values ? row.num_values : row.values.size(), row.permutation.data(), row.name);
        at += count;
        value += row.num_values;
    }
    if (at != qubits.size() || value != num_values) throw std::invalid_argument("too many qubits or values");
}

}  // namespace qsim
