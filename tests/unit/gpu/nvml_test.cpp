// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml.hpp"

#include "tests/unit/gpu/nvml_standin.hpp"

#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace gpusnoop;
using namespace gpusnoop::nvml_standin;

namespace {

// Returns "device:pid=bytes ..."; failures as "[device: why]".
std::string shown(Nvml& nvml)
{
    std::string all;
    for (const auto& process : nvml.processes())
        all += fmt::format("{}:{}={} ", process.device, process.pid, text(process.bytes));
    for (const auto& failure : nvml.failures())
        all += fmt::format("[{}: {}] ", failure.device, failure.why);
    return all.empty() ? all : all.substr(0, all.size() - 1);
}

std::string shown(const std::string& path)
{
    return shown(*open(path));
}

std::string refused(const NvmlPlaces& places)
{
    std::string why;
    CHECK(!Nvml::open(why, places));
    return why;
}

const std::string three = "device 0\nprocess 11 1048576\nprocess 12 2097152\nprocess 13 3145728\n"
                          "device 1\nprocess 12 4096\nprocess 14 unknown list=graphics\nprocess 15 8192 list=mps\n";
const std::string three_shown = "0:11=1048576 0:12=2097152 0:13=3145728 1:12=4096 1:14=- 1:15=8192";

} // namespace

TEST_CASE("all versions of the list functions yield the same processes", "[nvml]")
{
    for (const char* symbols : {"v3", "v2", "none"}) {
        const Answers answers(fmt::format("symbols {}\n{}", symbols, three));
        INFO(symbols);
        const auto nvml = open(standin());
        CHECK(nvml->devices() == 2);
        CHECK(shown(*nvml) == three_shown);
    }
    const Answers answers(three);
    CHECK(shown(answers.without({"Processes_v2"})) == three_shown);
    CHECK(shown(answers.without({"Processes_v2", "Processes_v3"})) == three_shown);
    CHECK(shown(answers.without({"Init_v2", "Count_v2", "ByIndex_v2"})) == three_shown);
    CHECK(shown(answers.without({"MPSComputeRunningProcesses"})) ==
          three_shown.substr(0, three_shown.rfind(' '))); // a library without MPS lists
}

TEST_CASE("the size of list elements is detected", "[nvml]")
{
    for (const char* driver : {"535.43.02", "535.54.03", "535.86.05"}) {
        const Answers answers(fmt::format("driver {}\n{}", driver, three));
        INFO(driver);
        CHECK(shown(standin()) == three_shown);
        CHECK(shown(answers.without({"Processes_v2"})) == three_shown); // 32 bytes
    }
    for (const int bytes : {16, 24, 32}) {
        const Answers answers(fmt::format("element {}\n{}", bytes, three));
        INFO(bytes);
        CHECK(shown(standin()) == three_shown);
        CHECK(shown(answers.without({"Processes_v2"})) == three_shown);
        CHECK(shown(answers.without({"Processes_v2", "Processes_v3"})) == three_shown);
    }
    const Answers answers("element 40\ndevice 0\nprocess 11 1048576\nprocess 12 4096\n");
    CHECK(shown(standin()) == "[0: the layout of NVML's process list is unknown]");
}

TEST_CASE("a process is listed once per device", "[nvml]")
{
    const Answers answers("device 0\n"
                          "process 11 4096\nprocess 11 4096 list=graphics\nprocess 11 4096 list=mps\n"
                          "process 12 unknown\nprocess 12 8192 list=graphics\n"
                          "process 13 0\n");
    CHECK(shown(standin()) == "0:11=4096 0:12=8192 0:13=0");

    SECTION("memory on several MIG instances is added up")
    {
        answers.set("device 0\n"
                    "process 11 4096 gi=1 ci=0\nprocess 11 8192 gi=2 ci=0\nprocess 11 8192 gi=2 ci=0 list=mps\n"
                    "process 12 4096 gi=1 ci=0\nprocess 12 unknown gi=2 ci=0\n"
                    "process 13 4096 gi=13 ci=1\n");
        CHECK(shown(standin()) == "0:11=12288 0:12=- 0:13=4096");
    }
    SECTION("impossible pids are omitted")
    {
        answers.set("device 0\nprocess 0 4096\nprocess 11 4096\nprocess 4194305 4096\nprocess 4294967295 1\n");
        CHECK(shown(standin()) == "0:11=4096");
    }
}

TEST_CASE("the MIG instance of a process", "[nvml]")
{
    const auto instances = [](const std::string& path) {
        std::string all;
        for (const auto& process : open(path)->processes())
            all += fmt::format("{}:{},{} ", process.pid, text(process.gpu_instance), text(process.compute_instance));
        return all;
    };
    const Answers answers("device 0\n"
                          "process 11 4096\n"
                          "process 12 4096 gi=7 ci=0\nprocess 12 4096 gi=7 ci=0 list=graphics\n"
                          "process 13 4096 gi=7 ci=0\nprocess 13 4096 gi=7 ci=1 list=mps\n"
                          "process 14 4096 gi=3\n"
                          "process 15 4096 gi=300 ci=4000000\n"
                          "process 16 4096 gi=0 ci=0\nprocess 16 4096 list=graphics\n");
    CHECK(instances(standin()) == "11:-,- 12:7,0 13:-,- 14:3,- 15:-,- 16:0,0 ");
    CHECK(instances(answers.without({"Processes_v2"})) == "11:-,- 12:7,0 13:-,- 14:3,- 15:-,- 16:0,0 ");
    CHECK(instances(answers.without({"Processes_v2", "Processes_v3"})) == "11:-,- 12:-,- 13:-,- 14:-,- 15:-,- 16:-,- ");
}

TEST_CASE("changed answers are used while the library stays open", "[nvml]")
{
    const Answers answers("device 0\n");
    const auto nvml = open(standin());
    CHECK(shown(*nvml).empty());
    answers.set("device 0\nprocess 11 4096\n");
    CHECK(shown(*nvml) == "0:11=4096");
    answers.set("device 0\nprocess 11 8192\nprocess 12 4096\n");
    CHECK(shown(*nvml) == "0:11=8192 0:12=4096");
    answers.set("device 0\n");
    CHECK(shown(*nvml).empty());
}

TEST_CASE("a list that grows while it is read is read completely", "[nvml]")
{
    const Answers answers("grow 1\ndevice 0\nprocess 11 4096\n");
    CHECK(shown(standin()) == "0:11=4096 0:100000=4096 0:100001=4096");
    answers.set("grow 1000\ndevice 0\nprocess 11 4096\n");
    CHECK(open(standin())->processes().size() == 3001);
    answers.set("grow 100000\ndevice 0\nprocess 11 4096\ndevice 1\nprocess 11 4096 list=mps\n");
    const auto nvml = open(standin());
    CHECK(nvml->processes().size() == 1);
    CHECK(nvml->failures().size() == 2);
}

TEST_CASE("the reported number of elements is not trusted", "[nvml]")
{
    const Answers answers("claim 4000000000\ndevice 0\nprocess 11 4096\n");
    CHECK(shown(standin()) == "[0: the layout of NVML's process list is unknown]");
    answers.set("need 4000000000\ndevice 0\nprocess 11 1048576\n");
    CHECK(shown(standin()) == "0:11=1048576");
    answers.set("need 1\n" + three);
    CHECK(shown(standin()) == three_shown);
    answers.set("claim 2\n" + three);
    CHECK(shown(standin()).starts_with("0:11=1048576 0:12=2097152 "));

    // A function that writes two elements of 24 bytes, but first reports 5 elements, then 3. Three elements of 16 bytes
    // would have the same length.
    static unsigned claim;
    const auto liar = [](NvmlDevice, unsigned* count, void* elements) -> int {
        if (*count < claim) {
            *count = claim;
            return NVML_INSUFFICIENT_SIZE;
        }
        const NvmlElement two[] = {{11, 0, 4096, ~0u, ~0u}, {12, 0, 4096, ~0u, ~0u}};
        memcpy(elements, two, sizeof(two));
        return NVML_OK;
    };
    for (const unsigned reported : {5u, 3u}) {
        claim = reported;
        int code = 0;
        CHECK(read_nvml_list({liar, sizeof(NvmlElement)}, nullptr, code).empty());
        CHECK(code == NVML_UNREADABLE);
    }
    claim = 2;
    int code = -1;
    CHECK(read_nvml_list({liar, sizeof(NvmlElement)}, nullptr, code).size() == 2);
    CHECK(code == NVML_OK);
}

TEST_CASE("a lost device does not hide the others", "[nvml]")
{
    const Answers answers("fail device 0 15\n" + three);
    const auto nvml = open(standin());
    CHECK(shown(*nvml) == "1:12=4096 1:14=- 1:15=8192 [0: GPU is lost (error 15)]");
    answers.set("fail compute 1 15\n" + three);
    CHECK(shown(*nvml) == "0:11=1048576 0:12=2097152 0:13=3145728 1:14=- 1:15=8192 [1: GPU is lost (error 15)]");
    answers.set(three);
    CHECK(shown(*nvml) == three_shown);

    SECTION("a missing list is not a failure, unless all lists are missing")
    {
        answers.set("fail graphics 1 3\n" + three);
        CHECK(shown(*nvml) == "0:11=1048576 0:12=2097152 0:13=3145728 1:12=4096 1:15=8192");
        answers.set("fail compute 0 3\nfail graphics 0 3\nfail mps 0 3\n" + three);
        CHECK(shown(*nvml) == "1:12=4096 1:14=- 1:15=8192 [0: Not Supported (error 3)]");
    }
}

TEST_CASE("reasons why NVML cannot be opened", "[nvml]")
{
    const Answers answers(three);
    CHECK(refused({"libgpusnoop-none.so.1", {}}).starts_with("NVML cannot be opened: libgpusnoop-none.so.1: "));
    CHECK(refused({answers.folder.file("none"), {}}).starts_with("NVML cannot be opened: "));
    CHECK(refused({answers.folder.file("answers"), {}}).find("invalid ELF header") != std::string::npos);
    for (const char* symbol :
         {"nvmlInit", "nvmlShutdown", "GetCount", "GetHandleByIndex", "GetComputeRunningProcesses"})
        CHECK(refused({answers.without({symbol}), {}}) ==
              "the NVML library lacks functions: it is too old, or is not NVML");
    answers.set("fail init 18\n");
    CHECK(refused({standin(), {}}) == "NVML does not start: Driver/library version mismatch (error 18)");
    CHECK(refused({answers.without({"ErrorString"}), {}}) == "NVML does not start: unknown (error 18)");
    unsetenv("STANDIN_NVML");
    CHECK(refused({standin(), {}}) == "NVML does not start: Driver Not Loaded (error 9)");
}

TEST_CASE("the library is shut down and closed at the end", "[nvml]")
{
    const Answers answers(three);
    const auto loaded = [] { return dlopen(standin().c_str(), RTLD_NOW | RTLD_NOLOAD); };
    auto nvml = open(standin());
    void* const kept = loaded();
    REQUIRE(kept);
    const auto count = reinterpret_cast<int (*)(unsigned*)>(dlsym(kept, "nvmlDeviceGetCount_v2"));
    REQUIRE(count);
    unsigned devices = 0;
    CHECK(count(&devices) == 0);
    nvml.reset();
    CHECK(count(&devices) == 1); // not initialized
    CHECK(dlclose(kept) == 0);
    CHECK(!loaded());
    answers.set("fail init 9\n");
    refused({standin(), {}});
    CHECK(!loaded());
}

TEST_CASE("outside the usual folders, a library is only opened if no other user than root can write it", "[nvml]")
{
    if (geteuid() != 0)
        SKIP("needs root");
    const Answers answers(three);
    const NvmlPlaces places{"copy.so", {"/nonexistent", answers.folder.path()}};
    const std::string copy = answers.without({"none"});
    std::string why;
    REQUIRE(chmod(copy.c_str(), 0644) == 0);
    const auto nvml = Nvml::open(why, places);
    REQUIRE(nvml);
    CHECK(shown(*nvml) == three_shown);

    const auto is_refused = [&] {
        return refused(places).find("is not used: it is not a file that only root") != std::string::npos;
    };
    for (const mode_t mode : {0666, 0664, 0646}) {
        REQUIRE(chmod(copy.c_str(), mode) == 0);
        CHECK(is_refused());
    }
    REQUIRE(chmod(copy.c_str(), 0644) == 0);
    REQUIRE(chown(copy.c_str(), 1000, 0) == 0);
    CHECK(is_refused());
    REQUIRE(unlink(copy.c_str()) == 0);
    answers.folder.fifo("copy.so"); // opening it does not block
    CHECK(is_refused());
}
