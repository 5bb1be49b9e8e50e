// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"
#include "tools/nvioctl/columns.hpp"

using namespace gpusnoop;

namespace {

struct NvIoctl : golden::TestedTool {
    static constexpr const char* name = "nvioctl";
    static constexpr const char* sort = "total_ns";
    using Settings = nvioctl::Settings;
    static constexpr auto validate_options = nvioctl::validate_options;

    static constexpr const char* modes[] = {"--by cgroup",
                                            "-T -r 3",
                                            "-x",
                                            "-X -s calls -r 3",
                                            "-U -r 1",
                                            "--columns COMMAND,CALLS -s ERRORS -r 2",
                                            "--by class",
                                            "--by command,device,class,pid,comm,thread,container,pod,namespace,cgroup "
                                            "--columns +CALLS/s,+?,+BYTES,+VIRTUAL,+p50(us),+p99(us)",
                                            "-H latency -L -N --by device,class",
                                            "-H latency -P -m -x"};
    static constexpr const char* full_table = "--by pid,command,device";
    static constexpr const char* by = "command device class";
    static constexpr const char* sums = "calls errors unknown pending total_ns";

    static CallDelta entries(const image& who, driver_entry entry, driver_node node, uint64_t subject, uint64_t n,
                             uint64_t ns_each, driver_outcome outcome = OUTCOME_OK, int result = 0)
    {
        CallDelta call = golden::calls_of(who, static_cast<uint8_t>(entry), "", n, ns_each);
        call.key.layer = LAYER_KERNEL;
        call.key.subject = subject;
        call.key.flags = subject >> 32 ? CALL_SUBJECT : 0;
        call.key.driver = {static_cast<uint16_t>(node == NODE_NVIDIA_CTL ? 255 : 1), static_cast<uint8_t>(node),
                           static_cast<uint8_t>(outcome)};
        call.key.result = result;
        return call;
    }

    static std::vector<CallDelta> calls()
    {
        using namespace golden;
        std::vector<CallDelta> all = {
            entries(trainer, ENTRY_IOCTL, NODE_NVIDIA_CTL, 0x20800102'c020462a, 101, 12'000),
            entries(trainer, ENTRY_IOCTL, NODE_NVIDIA_CTL, 0x00000040'c030462b, 29, 800'000),
            entries(trainer, ENTRY_IOCTL, NODE_NVIDIA_CTL, 0x00000040'c030462b, 2, 90'000, OUTCOME_STATUS, 0x51),
            entries(trainer, ENTRY_IOCTL, NODE_NVIDIA_CTL, 0x0000c46f'c030462b, 3, 2'000'000),
            entries(trainer, ENTRY_IOCTL, NODE_NVIDIA_UVM, 51, 4'000, 30'000),
            entries(solver, ENTRY_IOCTL, NODE_NVIDIA_GPU, 0xc0104629, 13, 5'000, OUTCOME_ERRNO, -9),
            entries(solver, ENTRY_IOCTL, NODE_NVIDIA_CTL, 0xc01046ff, 5, 1'000, OUTCOME_UNKNOWN),
            entries(solver, ENTRY_MMAP, NODE_NVIDIA_GPU, 0, 7, 9'000),
            entries(server, ENTRY_OPEN, NODE_NVIDIA_CTL, 0, 1, 20'000),
            entries(server, ENTRY_CLOSE, NODE_NVIDIA_CTL, 0, 1, 700'000'000),
            entries(server, ENTRY_IOCTL, NODE_KFD, 0xc0284b16, 17, 60'000),
        };
        all[1][MEMORY_BYTES] = 29 * 4096;
        all[4][MEMORY_BYTES] = uint64_t{4'000} << 21;
        all[4].key.flags = CALL_VIRTUAL;
        return all;
    }

    static void print(Output& output, const Options& options, const Settings& settings,
                      const std::vector<CallDelta>& calls)
    {
        golden::TestProcesses processes;
        DriverGroups groups(settings, processes);
        for (const CallDelta& call : calls)
            groups.add(call);
        if (!settings.histogram() && !options.failed_only) {
            driver_call stuck{};
            stuck.key = entries(golden::server, ENTRY_IOCTL, NODE_NVIDIA_CTL, 0xc0104629, 1, 1).key;
            stuck.since_ns = 1'000'000'000;
            groups.add(stuck, 4'500'000'000);
        }
        const nvioctl::Context context{options, settings, processes, 2.0, {}, golden::frames_of(settings)};
        nvioctl::print_groups(output, groups, context, golden::wall_ns);
    }
};

} // namespace

TEST_CASE("nvioctl output matches the golden file", "[golden]")
{
    golden::check<NvIoctl>();
}
