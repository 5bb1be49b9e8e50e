// SPDX-License-Identifier: Apache-2.0
#include "rows/process_gpus.hpp"

#include "tests/unit/gpu/nvml_standin.hpp"

using namespace gpusnoop;
using gpusnoop::nvml_standin::Answers;
using gpusnoop::nvml_standin::standin;

namespace {

constexpr uint64_t second = 1'000'000'000;

call_key call(uint32_t pid, uint8_t device)
{
    call_key key{};
    key.image = {pid, 1};
    key.device = device;
    return key;
}

// Processes with their open GPU files, by pid.
struct Machine {
    explicit Machine(const std::string& library) : nvml(library) {}

    void refresh(std::initializer_list<uint32_t> pids)
    {
        std::vector<ImageId> running;
        for (const uint32_t pid : pids)
            running.push_back(image{pid, 1});
        now_ns += second;
        gpus.refresh(running, now_ns);
    }
    std::string of(uint32_t pid) const
    {
        const OnGpus on = gpus.of(image{pid, 1});
        return gpu_text(on.gpus) + " " + std::string(source_name(on.source)) +
               (on.possible.empty() ? "" : " ?" + gpu_text(on.possible));
    }
    std::string of_call(uint32_t pid, uint8_t device) const { return gpu_text({gpus.of_call(call(pid, device))}); }

    std::map<pid_t, std::set<unsigned>> files;
    int scans = 0;
    uint64_t now_ns = 0;
    NvmlFigures nvml;
    ProcessGpus gpus{nvml, [this](pid_t pid) {
                         scans++;
                         return std::optional(files[pid]);
                     }};
};

} // namespace

TEST_CASE("GPUs as text", "[gpus]")
{
    const auto index = [](uint16_t number, uint16_t instance = Gpu::whole) {
        return Gpu{Gpu::By::index, number, instance};
    };
    CHECK(gpu_text({}).empty());
    CHECK(gpu_text({Gpu()}).empty());
    CHECK(gpu_text({index(0)}) == "0");
    CHECK(gpu_text({index(0), index(1), index(3)}) == "0,1,3");
    CHECK(gpu_text({index(0), index(2), index(3), index(4), index(7)}) == "0,2-4,7");
    CHECK(gpu_text({index(0, 7), index(0, 9), index(1)}) == "0/gi7,0/gi9,1");
    CHECK(gpu_text({Gpu{Gpu::By::file, 2}, Gpu{Gpu::By::file, 3}}) == "nvidia2,3");
    CHECK(gpu_text({index(1), Gpu{Gpu::By::ordinal, 1}}) == "1 cuda:1");
}

TEST_CASE("without NVML, a single open GPU file identifies the GPU, and several do not", "[gpus]")
{
    Machine machine("off");
    machine.files = {{1, {2}}, {2, {0, 1, 2, 3}}, {3, {}}};
    machine.refresh({1, 2, 3});
    CHECK(machine.of(1) == "nvidia2 files");
    CHECK(machine.of(2) == "  ?nvidia0-3");
    CHECK(machine.of(3) == " ");
    CHECK(machine.of_call(1, DEVICE_UNKNOWN) == "nvidia2");
    CHECK(machine.of_call(1, 0) == "nvidia2");
    CHECK(machine.of_call(2, DEVICE_UNKNOWN).empty());

    machine.gpus.note_call(call(2, 1));
    machine.gpus.note_call(call(3, 0));
    machine.refresh({1, 2, 3});
    CHECK(machine.of(2) == "cuda:1 context ?nvidia0-3");
    CHECK(machine.of(3) == "cuda:0 context");
    CHECK(machine.of_call(2, 1) == "cuda:1");
    CHECK(machine.of_call(2, DEVICE_UNKNOWN).empty()); // the call may be on another GPU
    CHECK(machine.gpus.of({image{1, 1}, image{3, 1}}).source == GpuSource::none);
    CHECK(gpu_text(machine.gpus.of({image{1, 1}, image{3, 1}}).gpus) == "nvidia2 cuda:0");

    machine.gpus.forget({image{3, 1}});
    CHECK(machine.of(3) == " ");
}

TEST_CASE("a process's open files are scanned every 5 s", "[gpus]")
{
    Machine machine("off");
    machine.refresh({1});
    machine.files = {{1, {0}}};
    for (int i = 0; i < 4; i++)
        machine.refresh({1});
    CHECK(machine.scans == 1);
    CHECK(machine.of(1) == " ");
    machine.refresh({1});
    CHECK(machine.scans == 2);
    CHECK(machine.of(1) == "nvidia0 files");
}

TEST_CASE("NVML's list takes precedence, and its minor numbers map files to GPU indices", "[gpus]")
{
    const Answers answers("device 0\nminor 3\nprocess 1 100\nprocess 4 5 gi=7 ci=0\n"
                          "device 1\nminor 0\nprocess 2 1\nprocess 1 7\n");
    Machine machine(standin());
    machine.files = {{1, {0, 3}}, {2, {0}}, {3, {3}}, {4, {3}}, {5, {9}}};
    machine.nvml.refresh(second);
    machine.gpus.note_call(call(1, 0));
    machine.gpus.note_call(call(2, 0));
    machine.refresh({1, 2, 3, 4, 5});
    CHECK(machine.of(1) == "0,1 nvml");
    CHECK(machine.of(2) == "1 nvml");
    CHECK(machine.of(3) == "0 files");
    CHECK(machine.of(4) == "0/gi7 nvml");
    CHECK(machine.of(5) == "nvidia9 files"); // a GPU that NVML does not list
    CHECK(machine.scans == 2);               // only the files of processes that NVML does not list are scanned

    // With several GPUs, it is unknown which of the machine's GPUs has a given CUDA device number.
    CHECK(machine.of_call(2, 0) == "1");
    CHECK(machine.of_call(2, DEVICE_UNKNOWN) == "1");
    CHECK(machine.of_call(1, 0) == "cuda:0");
    machine.gpus.note_call(call(2, 1)); // a call in a context that NVML's list does not contain yet
    CHECK(machine.of_call(2, 1) == "cuda:1");
}
