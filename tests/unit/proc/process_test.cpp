// SPDX-License-Identifier: Apache-2.0
#include "proc/process.hpp"

#include "proc/mapped_file.hpp"
#include "proc/threads.hpp"
#include "tests/unit/base/sleeping_child.hpp"
#include "threads_of_child.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;

namespace {

pid_t dead_process()
{
    SleepingChild child;
    child.end();
    return child.pid();
}

// Two pages of address space; only the first one is mapped.
struct HalfMapped {
    HalfMapped() { munmap(base + 4096, 4096); }
    HalfMapped(const HalfMapped&) = delete;
    HalfMapped& operator=(const HalfMapped&) = delete;
    ~HalfMapped() { munmap(base, 4096); }

    char* const base =
        static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char* const end = base + 4096;
};

uint64_t address_of(const void* pointer)
{
    return reinterpret_cast<uint64_t>(pointer);
}

Mapping parse_one(std::string_view line)
{
    const auto all = parse_maps(line);
    REQUIRE(all.size() == 1);
    return all[0];
}

} // namespace

TEST_CASE("parses a line of a maps file", "[process]")
{
    const Mapping m = parse_one("7f0000001000-7f0000003000 r-xp 0001f000 fd:2a 1234567     /usr/lib/libcuda.so.1\n");
    CHECK(m.start == 0x7f0000001000);
    CHECK(m.end == 0x7f0000003000);
    CHECK(m.file_offset == 0x1f000);
    CHECK(m.device == makedev(0xfd, 0x2a));
    CHECK(m.inode == 1234567);
    CHECK(m.executable);
    CHECK_FALSE(m.deleted);
    CHECK(m.path == "/usr/lib/libcuda.so.1");

    CHECK_FALSE(parse_one("1000-2000 rw-s 0 00:01 5 /dev/nvidia0").executable);
    CHECK(parse_one("1000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]").end == 0xffffffffff601000);
}

TEST_CASE("parses odd paths in a maps file", "[process]")
{
    const auto path = [](std::string_view text) {
        return parse_one("1000-2000 r-xp 0 08:01 7   " + std::string(text));
    };
    CHECK(path("/opt/a b  c/lib x.so ").path == "/opt/a b  c/lib x.so ");
    CHECK(path("/tmp/a\\012b\\012").path == "/tmp/a\nb\n");
    CHECK(path("/tmp/a\\01b\\").path == "/tmp/a\\01b\\");
    CHECK(path("/tmp/\xff\x1b[2J").path == "/tmp/\xff\x1b[2J");
    CHECK(path("/" + std::string(100000, 'x')).path.size() == 100001);

    CHECK(path("/tmp/lib.so (deleted)").path == "/tmp/lib.so");
    CHECK(path("/tmp/lib.so (deleted)").deleted);
    CHECK(path("/tmp/lib.so (deleted) (deleted)").path == "/tmp/lib.so (deleted)");
    CHECK_FALSE(path("/tmp/lib.so(deleted)").deleted);
    CHECK_FALSE(path("/tmp/lib.so (deleted) ").deleted);
    CHECK(path("/memfd:x (deleted)").path == "/memfd:x");

    for (const char* anonymous :
         {"", "[heap]", "[stack]", "[vdso]", "[anon:/lib/x.so]", "anon_inode:[perf_event]", "(deleted)", "lib.so"})
        CHECK(path(anonymous).path.empty());
    CHECK(parse_one("1000-2000 rw-p 00000000 00:00 0 ").path.empty());
    CHECK(parse_one("1000-2000 rw-p 00000000 00:00 0").path.empty());
}

TEST_CASE("skips malformed lines of a maps file", "[process]")
{
    const std::string good = "1000-2000 r-xp 0 08:01 7 /a\n";
    std::vector<std::string> all_bad{" \n", "x\n"};
    for (size_t size = 0; size <= good.find(" 7"); size++)
        all_bad.push_back(good.substr(0, size) + "\n");
    const std::pair<std::string, std::vector<std::string>> wrong_fields[] = {
        {"1000-2000", {"-1000-2000", "0x1000-2000", "2000-1000", "10000000000000000-20000000000000000"}},
        {"r-xp", {"rwxpp", "r-zp"}},
        {"08:01", {"08:-1", "fffffffff:01"}},
        {" 7 ", {" x ", " 7", " 99999999999999999999 "}}};
    for (const auto& [field, values] : wrong_fields)
        for (const std::string& value : values)
            all_bad.push_back(std::string(good).replace(good.find(field), field.size(), value));
    for (const std::string& bad : all_bad) {
        CAPTURE(bad);
        CHECK(parse_maps(bad).empty());
        CHECK(parse_maps(good + bad + good).size() == 2);
    }
    CHECK(parse_maps("").empty());
    CHECK(parse_maps(std::string_view("1000-2000 r-xp 0 08:01 7 /a\0b\n", 30)).size() == 1);
    for (size_t size = 0; size < good.size(); size++)
        CHECK(parse_maps(std::string_view(good).substr(0, size)).size() <= 1);
}

TEST_CASE("reads this process's own file mappings", "[process]")
{
    const auto all = mappings(getpid());
    const uint64_t here = address_of(reinterpret_cast<const void*>(&dead_process));
    const auto self =
        std::find_if(all.begin(), all.end(), [here](const Mapping& m) { return here >= m.start && here < m.end; });
    REQUIRE(self != all.end());
    CHECK(self->executable);
    struct stat status {};
    REQUIRE(stat("/proc/self/exe", &status) == 0);
    CHECK(self->inode == status.st_ino);
    CHECK(self->path.front() == '/');
    CHECK(std::none_of(all.begin(), all.end(), [](const Mapping& m) { return m.path.empty(); }));
}

TEST_CASE("reads names, ids and threads", "[process]")
{
    const auto all = all_processes();
    CHECK(std::find(all.begin(), all.end(), getpid()) != all.end());
    CHECK(std::find(all.begin(), all.end(), 1) != all.end());

    CHECK(process_of_thread(getpid()) == getpid());
    std::thread([] {
        prctl(PR_SET_NAME, "other-name");
        CHECK(gettid() != getpid());
        CHECK(process_of_thread(gettid()) == getpid());
        CHECK(process_name(getpid()) != "other-name");
    }).join();
}

TEST_CASE("the start time of a process is read correctly, whatever its name is", "[process]")
{
    const auto now = [] {
        timespec t{};
        clock_gettime(CLOCK_BOOTTIME, &t);
        return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    };
    constexpr int64_t tick = 10'000'000;
    const int64_t before = now();
    // Names that could mislead a parser of /proc/PID/stat.
    for (const char* name : {"plain", "a) R 1 1 (b", ") ", "((", "a b c d", "x\ny", "", "\\n)", "\nTgid:\t1\n"}) {
        CAPTURE(name);
        SleepingChild child([name] { return prctl(PR_SET_NAME, name) == 0; });
        REQUIRE(child.ready());
        const auto started = static_cast<int64_t>(start_time_ns(child.pid()));
        CHECK(started >= before - tick);
        CHECK(started <= now());
        CHECK(process_name(child.pid()) == std::string(name).substr(0, 15));
        CHECK(process_of_thread(child.pid()) == child.pid());
    }
}

TEST_CASE("a seccomp filter is detected", "[process]")
{
    SleepingChild child([] {
        sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
        const sock_fprog program{1, &allow};
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
    });
    if (!child.ready())
        SKIP("seccomp filters are not allowed here");
    CHECK(has_seccomp_filter(child.pid()));
}

TEST_CASE("an exited process has no data", "[process]")
{
    char byte = 0;
    for (const pid_t pid : {dead_process(), pid_t{0}, pid_t{-1}}) {
        CAPTURE(pid);
        CHECK(mappings(pid).empty());
        CHECK_FALSE(process_name(pid));
        CHECK(start_time_ns(pid) == 0);
        CHECK_FALSE(process_of_thread(pid));
        CHECK_FALSE(has_seccomp_filter(pid));
        CHECK_FALSE(read_memory(pid, address_of(&byte), &byte, 1));
        CHECK_FALSE(read_string(pid, address_of(&byte), 10));
    }
}

TEST_CASE("reads memory of this process and of another one", "[process]")
{
    std::array<uint64_t, 2> from{1, 2};
    std::array<uint64_t, 2> to{};
    CHECK(read_memory(getpid(), address_of(from.data()), to.data(), sizeof(to)));
    CHECK(to == from);

    SleepingChild child([&from] {
        from = {3, 4};
        return true;
    });
    REQUIRE(child.ready());
    CHECK(read_memory(child.pid(), address_of(from.data()), to.data(), sizeof(to)));
    CHECK(to == std::array<uint64_t, 2>{3, 4});
    CHECK(from == std::array<uint64_t, 2>{1, 2});
}

TEST_CASE("a process whose main thread has exited is read through another thread", "[process]")
{
    uint64_t word = 1;
    const ThreadsOfChild child(1, [&word] { word = 2; });
    const pid_t pid = child.pid();
    CHECK(running_thread(pid) == pid);
    CHECK_FALSE(other_running_thread(pid));
    const uint64_t start_ns = start_time_ns(pid);

    child.end_main();
    const auto thread = running_thread(pid);
    REQUIRE(thread);
    CHECK(*thread != pid);
    CHECK(other_running_thread(pid) == thread);
    CHECK(start_time_ns(pid) == start_ns);
    CHECK(has_memory(pid));
    CHECK_FALSE(mappings_are_refused(pid));
    CHECK(code_mappings(pid).size() >= code_mappings(getpid()).size());
    const auto files = mappings(pid);
    REQUIRE_FALSE(files.empty());
    CHECK(open_mapped(pid, files.front()));
    CHECK(find_in_root_of(pid, files.front().path));
    CHECK(environment(pid) == environment(getpid()));
    CHECK(command_line(pid) == command_line(getpid()));
    CHECK(cgroup_lines(pid) == cgroup_lines(getpid()));
    CHECK(owner_of(pid) == owner_of(getpid()));
    CHECK(mount_namespace(pid) == mount_namespace(getpid()));
    CHECK(allowed_cpus(pid) == allowed_cpus(getpid()));
    uint64_t read = 0;
    CHECK(read_memory(pid, address_of(&word), &read, sizeof(read)));
    CHECK(read == 2);

    child.end_one();
    CHECK_FALSE(running_thread(pid)); // the process is a zombie
    CHECK(start_time_ns(pid) == start_ns);
    CHECK_FALSE(has_memory(pid));
    CHECK_FALSE(read_memory(pid, address_of(&word), &read, sizeof(read)));
}

TEST_CASE("fails to read unmapped memory", "[process]")
{
    const HalfMapped half;
    std::array<char, 64> to{};
    const uint64_t end = address_of(half.end);
    CHECK(read_memory(getpid(), end - 64, to.data(), 64));
    CHECK_FALSE(read_memory(getpid(), end - 63, to.data(), 64));
    CHECK_FALSE(read_memory(getpid(), end, to.data(), 1));
    CHECK(read_memory(getpid(), end, to.data(), 0));
    for (const uint64_t address : {uint64_t{0}, uint64_t{1} << 47, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 32})
        CHECK_FALSE(read_memory(getpid(), address, to.data(), 64));
}

TEST_CASE("reads memory that the process itself may not read", "[process]")
{
    auto* page = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(page, "kept", sizeof("kept"));
    mprotect(page, 4096, PROT_NONE);
    std::array<char, 5> to{};
    const bool read = read_memory(getpid(), address_of(page), to.data(), to.size()); // through /proc/PID/mem
    munmap(page, 4096);
    if (!read)
        SKIP("this kernel restricts /proc/PID/mem (proc_mem.force_override)");
    CHECK(std::string_view(to.data()) == "kept");
}

TEST_CASE("reads strings of a process", "[process]")
{
    const HalfMapped half;
    const auto at_end = [&half](size_t back) { return address_of(half.end - back); };
    std::memset(half.end - 4096, 'x', 4096);
    CHECK_FALSE(read_string(getpid(), at_end(4), 100)); // the string reaches the unmapped page
    CHECK(read_string(getpid(), at_end(4), 4) == "xxxx");
    CHECK(read_string(getpid(), at_end(4), 2) == "xx");
    CHECK(read_string(getpid(), at_end(4), 0) == "");
    std::memcpy(half.end - 6, "hello", sizeof("hello"));
    CHECK(read_string(getpid(), at_end(6), 100) == "hello");
    CHECK(read_string(getpid(), at_end(1), 100) == "");
    CHECK_FALSE(read_string(getpid(), 0, 100));
    CHECK_FALSE(read_string(getpid(), ~uint64_t{0}, 100));

    const std::string longer(10000, 'y'); // over several pages
    CHECK(read_string(getpid(), address_of(longer.c_str()), 20000) == longer);
    CHECK(read_string(getpid(), address_of(longer.c_str()), 5000) == longer.substr(0, 5000));
}
