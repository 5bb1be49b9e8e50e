// SPDX-License-Identifier: Apache-2.0
// How well a device was used, by its own counters: means over the time for which somebody told them.
#pragma once

#include "gpu/nvml.hpp"
#include "tools/gpuspend/shares.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

enum class Figure : uint8_t { sm_active, sm_occupancy, tensor_active, dram_active, gpu_busy, memory_used };
constexpr size_t figure_count = 6;

// Who tells. Of several, all count.
enum MeasuredBy : uint8_t { MEASURED_BY_NVML = 1, MEASURED_BY_DCGM = 2 };
std::string measured_by_text(uint8_t sources); // "nvml,dcgm"

// At one time: millionths of what is there; of memory, bytes. nullopt: nobody tells.
struct Gauges {
    std::array<std::optional<uint64_t>, figure_count> values;
    uint8_t sources = 0; // enum MeasuredBy

    bool any() const { return sources != 0; }
    void set(Figure figure, std::optional<uint64_t> value, MeasuredBy source); // unless it is known already
    void set_percent(Figure figure, std::optional<double> percent, MeasuredBy source);
};

// What NVML says of the hardware, of a device or of an instance.
void add_efficiency(Gauges& gauges, const NvmlEfficiency& efficiency);

// Over some time.
struct Efficiency {
    struct Measured {
        uint64_t ns = 0; // for which it was told
        uint128 sum = 0; // value times how long
    };
    std::array<Measured, figure_count> figures;
    uint64_t shared_ns = 0; // of the time, others held the device, too: it is not its holder's alone
    uint8_t sources = 0;

    void add(const Gauges& gauges, uint64_t ns, bool shared);
    void add(const Efficiency& more);
    std::optional<double> mean(Figure figure) const; // in the units of Gauges
};

} // namespace gpusnoop
