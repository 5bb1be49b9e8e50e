// SPDX-License-Identifier: Apache-2.0
// The GPUs of a machine, and their MIG instances, whose times add up to the device's time.
#include "tools/gpuspend/machine_gpus.hpp"

#include "tests/unit/gpu/nvml_standin.hpp"

#include <numeric>

using namespace gpusnoop;
using gpusnoop::nvml_standin::Answers;
using gpusnoop::nvml_standin::standin;

namespace {

const std::string divided = "device 0\nuuid GPU-a\nname A\nmig 1\nminor 4\ninstance 1 0 3 MIG-x\ninstance 2 0 2 MIG-y\n"
                            "instance 5 0 1 MIG-z\ninstance 5 1 1 MIG-w\n";
const std::string whole = "device 1\nuuid GPU-b\nname B\n";

struct Machine {
    Answers answers{divided + whole};
    NvmlFigures figures{standin()};
    MachineGpus gpus;
    uint64_t now_ns = 0;

    Machine() { refresh(divided + whole); }
    void refresh(const std::string& text)
    {
        answers.set(text);
        figures.refresh(now_ns += 10'000'000'000);
        gpus.refresh(figures, answers.folder.path(), {});
    }
    std::string at(Gpu gpu) const { return gpus.at(gpu) ? gpus.at(gpu)->id : "-"; }
    std::string named(std::string_view name) const { return gpus.named(name) ? gpus.named(name)->id : "-"; }
    std::map<std::string, uint64_t> times(uint64_t ns) const
    {
        const auto all = gpus.times(ns);
        std::map<std::string, uint64_t> of;
        for (size_t i = 0; i < all.size(); i++)
            of[gpus.all()[i].id] = all[i];
        return of;
    }
};

} // namespace

TEST_CASE("each MIG instance gets its share of the device's time", "[spend]")
{
    Machine machine;
    using Times = std::map<std::string, uint64_t>;
    CHECK(machine.times(7000) ==
          Times{{"GPU-a", 0}, {"MIG-x", 3000}, {"MIG-y", 2000}, {"MIG-z", 1000}, {"MIG-w", 1000}, {"GPU-b", 7000}});
    const Times odd = machine.times(1'000'000'007);
    CHECK(std::accumulate(odd.begin(), odd.end(), uint64_t{0},
                          [](uint64_t sum, const auto& of) { return sum + of.second; }) == 2'000'000'014);
    CHECK(machine.gpus.divided());
    CHECK(machine.named("MIG-w") == "MIG-w");
    CHECK(machine.at({Gpu::By::index, 0, 5, 1}) == "MIG-w");
    CHECK(machine.at({Gpu::By::file, 4, 5, 0}) == "MIG-z");
    CHECK(machine.at({Gpu::By::index, 0, 5}) == "-");        // one of two compute instances, unknown which
    CHECK(machine.at({Gpu::By::index, 0, 5, 7}) == "-");     // an instance that the list does not contain yet
    CHECK(machine.at({Gpu::By::index, 0, 2, 0}) == "MIG-y"); // the only compute instance
    CHECK(machine.named("MIG-x") == "MIG-x");
    CHECK(machine.named("0") == "GPU-a");
    CHECK(machine.at({Gpu::By::index, 0, 2}) == "MIG-y");
    CHECK(machine.at({Gpu::By::index, 0}) == "-"); // one of several instances, unknown which
    CHECK(machine.at({Gpu::By::file, 4}) == "-");
    CHECK(machine.at({Gpu::By::index, 0, 6}) == "-"); // an instance that the list does not contain yet
    CHECK(machine.at({Gpu::By::index, 1}) == "GPU-b");
}

TEST_CASE("MIG instances are removed, devices are not", "[spend]")
{
    Machine machine;
    machine.refresh("device 0\nuuid GPU-a\nmig 1\ninstance 1 0 4 MIG-new\n" + whole);
    CHECK(machine.times(7) == std::map<std::string, uint64_t>{{"GPU-a", 3}, {"MIG-new", 4}, {"GPU-b", 7}});
    CHECK(machine.at({Gpu::By::index, 0}) == "MIG-new");     // the only instance
    machine.refresh("fail device 0 15\ndevice 0\n" + whole); // a failed device still costs money
    CHECK(machine.times(7).size() == 3);
    machine.refresh("device 0\nuuid GPU-a\nmig 0\n" + whole);
    CHECK(machine.times(7) == std::map<std::string, uint64_t>{{"GPU-a", 7}, {"GPU-b", 7}});
    CHECK(!machine.gpus.divided());
    CHECK(machine.at({Gpu::By::index, 0}) == "GPU-a");
}
