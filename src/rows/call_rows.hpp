// SPDX-License-Identifier: Apache-2.0
// The rows in the kernel that calls are counted in, one value per possible CPU.
#pragma once

#include "base/bpf_map.hpp"
#include "base/shares.hpp"
#include "bpf/shared/call.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace gpusnoop {

// What the table of calls asks of them; tests have others.
class CallRows {
public:
    virtual ~CallRows() = default;

    virtual size_t capacity() const = 0; // of the table; there may be rows in front of it
    // A key may come more than once, with stats of its own each time.
    using Each = std::function<void(const call_key&, std::span<const call_stats>)>;
    virtual void for_each(const Each& each) = 0;
    virtual size_t taken() const = 0; // rows of the table, as of the last for_each() less those erased
    virtual void erase(std::span<const call_key> keys) = 0;
    // Calls count in rows of this generation (0 or CALL_GENERATION) from now on: when it returns, nobody adds to a row
    // of the other one any more. False where that cannot be known.
    virtual bool turn(uint8_t generation) = 0;
};

class KernelCallRows : public CallRows {
public:
    // generation: the variable of the BPF programs. shares: of their tables; must outlive the object. Throws Error.
    KernelCallRows(int table_fd, int front_fd, uint8_t& generation, Shares& shares);

    size_t capacity() const override { return capacity_; }
    void for_each(const Each& each) override;
    size_t taken() const override { return taken_; }
    void erase(std::span<const call_key> keys) override;
    bool turn(uint8_t generation) override;

private:
    call_key key_at(size_t place) const;

    HashTable<call_key, call_stats> table_;
    size_t capacity_;
    size_t taken_ = 0;
    uint32_t key_bytes_;
    size_t cpus_;
    size_t places_; // of all CPUs
    SharedArray<front_row> front_;
    volatile uint8_t& generation_;
    Shares& shares_;
    ProgramBarrier barrier_;
};

// How many rows each CPU has in front of a table of so many: a power of two, in bits.
uint32_t front_bits_for(size_t table_rows, size_t possible_cpus);

// How many rows fit into what the table may take, 64 MiB over all CPUs; some thousands however many CPUs there are.
size_t rows_for(size_t key_bytes, size_t possible_cpus);

} // namespace gpusnoop
