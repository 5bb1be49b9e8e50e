// SPDX-License-Identifier: Apache-2.0
#include "names/stack_names.hpp"

#include "attach/calling_convention.hpp"
#include "tests/unit/base/sleeping_child.hpp"
#include "tests/unit/code/elf_fixtures.hpp"

#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <random>
#include <sched.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <thread>

using namespace gpusnoop;
using gpusnoop::elf_fixtures::BuildFolder;

namespace {

using Strings = std::vector<std::string>;

constexpr const char* program_source = R"(
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
namespace demo { struct Shape { __attribute__((noinline, used)) int area(int by) const { return by * side; } int side; }; }
extern "C" {
__attribute__((noinline)) int outer(int x) { return x + 1; }
static __attribute__((noinline, used)) int local(int x) { return x * 3; }
extern char asm_first[], asm_second[], asm_label[], asm_long[];
}
__asm__(".text; .globl asm_first, asm_second, asm_label; .type asm_first,@function; .type asm_second,@function\n"
        "asm_first: nop; nop; call abort@PLT; .size asm_first, .-asm_first\n"
        "asm_second: nop; ret; .size asm_second, .-asm_second; asm_label: nop; nop; ret\n"
        ".globl asm_weak, asm_short, asm_long; .weak asm_weak; .type asm_weak,@function; .type asm_short,@function\n"
        ".type asm_long,@function; asm_weak: asm_short: asm_long: nop; .size asm_short, .-asm_short; nop; nop; ret\n"
        ".size asm_weak, .-asm_weak; .size asm_long, .-asm_long");
static void show(const char* name, void* at) { printf("%s %p\n", name, at); fflush(stdout); }
static void load(const char* path, const char* symbol)
{
    void* library = dlopen(path, RTLD_NOW);
    show(symbol, library ? dlsym(library, symbol) : 0);
}
int main(int argc, char** argv)
{
    int (demo::Shape::*area)(int) const = &demo::Shape::area;
    show("outer", (void*)outer);
    show("local", (void*)local);
    show("area", *(void**)&area);
    show("asm_second", asm_second);
    show("asm_label", asm_label);
    show("asm_long", asm_long);
    if (argc > 2)
        load(argv[1], argv[2]);
    show("ready", (void*)1);
    char path[256], symbol[256];
    while (scanf("%255s %255s", path, symbol) == 2) {
        if (path[0] == '-')
            execl(symbol, symbol, (char*)0);
        load(path, symbol);
    }
    pause();
}
)";

constexpr const char* library_source = R"(
__attribute__((noinline)) int NAME(int x) { return x + 7; }
static __attribute__((noinline, used)) int NAME2(int x) { return x + 9; }
int more(int x) { return NAME2(x); }
)";

struct Fixtures : BuildFolder {
    Fixtures()
    {
        file("main.cpp", program_source);
        file("lib.c", library_source);
        run("g++ -g -fno-omit-frame-pointer -fPIE -pie main.cpp -o program -ldl");
        run("g++ -g -fno-omit-frame-pointer -fno-pic -no-pie main.cpp -o fixed -ldl");
        run("cp program bare && strip bare");
        run("gcc -g -fPIC -shared -DNAME=first_call -DNAME2=hidden_call lib.c -o libfirst.so");
        run("gcc -g -fPIC -shared -DNAME=other_call -DNAME2=hidden_other lib.c -o libother.so");
    }
};

const Fixtures& fixtures()
{
    if (host != Machine::x86_64)
        SKIP("the fixture is in x86-64 assembly");
    static const Fixtures all;
    return all;
}

ImageId id_of(pid_t pid, uint32_t serial = 1)
{
    return ::image{static_cast<uint32_t>(pid), serial};
}

// A running fixture, which has printed the addresses of its functions.
class Program {
public:
    Program(const char* name, const std::string& library = "", const char* symbol = "", bool (*prepare)() = nullptr)
        : child_([&, path = fixtures().file(name)] {
              dup2(to_.reading.get(), 0);
              dup2(from_.writing.get(), 1);
              if (!prepare || prepare())
                  execl(path.c_str(), path.c_str(), library.empty() ? nullptr : library.c_str(), symbol, nullptr);
              return false;
          })
    {
        REQUIRE(child_.ready());
        to_.reading = {};
        from_.writing = {};
        while (read_line() != "ready") {}
    }

    void end() { child_.end(); }
    void command(const std::string& line) const { REQUIRE(write_all(to_.writing.get(), line + '\n')); }
    uint64_t load(const std::string& path, const std::string& symbol)
    {
        command(path + ' ' + symbol);
        read_line();
        return at(symbol);
    }
    pid_t pid() const { return child_.pid(); }
    uint64_t at(const std::string& symbol) const { return addresses_.at(symbol); }

private:
    std::string read_line()
    {
        char name[256];
        unsigned long address = 0;
        if (fscanf(in_.get(), "%255s 0x%lx", name, &address) != 2)
            throw std::runtime_error("the fixture does not run");
        addresses_[name] = address;
        return name;
    }

    Ends from_ = pipe_ends(), to_ = pipe_ends();
    SleepingChild child_;
    std::unique_ptr<FILE, int (*)(FILE*)> in_{fdopen(dup(from_.reading.get()), "r"), fclose};
    std::map<std::string, uint64_t> addresses_;
};

std::string frame(StackNames& symbols, const ImageId& id, uint64_t address)
{
    const Strings one = symbols.frames(id, std::array{address});
    REQUIRE(one.size() == 1);
    return one[0];
}

void wait_for_refresh()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(1050));
}

// A file mapped by this process.
class Mapped {
public:
    Mapped(const std::string& path, size_t size) : size_(size)
    {
        const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
        at_ = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
        REQUIRE(at_ != MAP_FAILED);
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    ~Mapped() { munmap(at_, size_); }
    uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }

private:
    size_t size_;
    void* at_;
};

} // namespace

TEST_CASE("a program, and a library whose file was deleted, are symbolized")
{
    const std::string path = fixtures().file("libgone.so", contents(fixtures().file("libfirst.so")));
    const Program program("program", path, "first_call");
    std::filesystem::remove(path);
    StackNames symbols;
    const std::array<uint64_t, 5> stack = {program.at("first_call") + 4, program.at("outer") + 4,
                                           program.at("local") + 4, program.at("area") + 4, 0x10};
    const Strings expected = {"first_call+0x4 (libgone.so)", "outer+0x4 (program)", "local+0x4 (program)",
                              "demo::Shape::area(int) const+0x4 (program)"}; // nothing is at 0x10
    CHECK(symbols.frames(id_of(program.pid()), stack) == expected);
    CHECK(symbols.frames(id_of(program.pid()), stack) == expected);
    CHECK(symbols.frames(id_of(program.pid()), {}).empty());
    CHECK(frame(symbols, id_of(program.pid()), 0) == "0x0");
    CHECK(frame(symbols, id_of(program.pid()), UINT64_MAX) == "0xffffffffffffffff");
    const Program fixed("fixed"); // a program at a fixed address
    CHECK(frame(symbols, id_of(fixed.pid()), fixed.at("outer") + 4) == "outer+0x4 (fixed)");
}

TEST_CASE("return addresses belong to the call before them")
{
    const Program program("program");
    StackNames symbols;
    const uint64_t second = program.at("asm_second");
    const std::array<uint64_t, 3> stack = {second, second, second + 1};
    CHECK(symbols.frames(id_of(program.pid()), stack) ==
          Strings{"asm_second+0x0 (program)", "asm_first+0x7 (program)", "asm_second+0x1 (program)"});
    CHECK(frame(symbols, id_of(program.pid()), program.at("asm_label") + 1) == "asm_label+0x1 (program)");
    // The largest of several symbols at an address is used.
    for (const uint64_t offset : {0, 3})
        CHECK(frame(symbols, id_of(program.pid()), program.at("asm_long") + offset) ==
              "asm_long+0x" + std::to_string(offset) + " (program)");
}

TEST_CASE("addresses in a stripped program are shown as virtual addresses")
{
    const Program named("program");
    const Program bare("bare");
    StackNames symbols;
    // The stripped and the full program have the same code, so nm of the full program prints the function's offset in
    // both.
    const std::string list = fixtures().file("symbols");
    REQUIRE(fixtures().try_run("nm program | awk '$3 == \"outer\" { print $1 }' > symbols"));
    uint64_t outer = 0;
    std::ifstream(list) >> std::hex >> outer;
    std::ostringstream expected;
    expected << "bare+0x" << std::hex << outer + 4;
    CHECK(frame(symbols, id_of(bare.pid()), bare.at("outer") + 4) == expected.str());
    const std::array<uint64_t, 2> stack = {0x10, bare.at("outer") + 4};
    CHECK(symbols.frames(id_of(bare.pid()), stack)[1] == expected.str());
    CHECK(frame(symbols, id_of(named.pid()), named.at("outer") + 4) == "outer+0x4 (program)");
}

TEST_CASE("symbols in .gnu_debugdata are used")
{
    if (!fixtures().try_run(
            "cp program mini && objcopy --only-keep-debug program debug && strip -g debug 2>/dev/null && "
            "xz -kf debug && strip mini && objcopy --add-section .gnu_debugdata=debug.xz mini"))
        SKIP("no xz");
    const Program program("mini");
    StackNames symbols;
    CHECK(frame(symbols, id_of(program.pid()), program.at("local") + 4) == "local+0x4 (mini)");
}

TEST_CASE("known mappings of an exited process are still used")
{
    Program program("program", fixtures().file("libfirst.so"), "first_call");
    const ImageId id = id_of(program.pid());
    StackNames symbols;
    CHECK(frame(symbols, id, program.at("outer") + 4) == "outer+0x4 (program)");
    program.end();
    CHECK(frame(symbols, id, program.at("outer") + 4) == "outer+0x4 (program)");
    CHECK(frame(symbols, id, program.at("local") + 4) == "local+0x4 (program)");
    CHECK(frame(symbols, id, program.at("first_call") + 4).starts_with("libfirst.so+0x"));
    wait_for_refresh();
    CHECK(frame(symbols, id, program.at("area") + 5) == "demo::Shape::area(int) const+0x5 (program)");
    CHECK(frame(symbols, id, 0x10) == "0x10");
    symbols.forget(id);
    CHECK(frame(symbols, id, program.at("outer") + 4).starts_with("0x"));
}

TEST_CASE("a library that is loaded later is found after a second")
{
    Program program("program");
    const ImageId id = id_of(program.pid());
    StackNames symbols;
    CHECK(frame(symbols, id, program.at("outer")) == "outer+0x0 (program)");
    const uint64_t loaded = program.load(fixtures().file("libfirst.so"), "first_call");
    CHECK(frame(symbols, id, loaded).starts_with("0x")); // mappings are read once per second
    wait_for_refresh();
    CHECK(frame(symbols, id, loaded) == "first_call+0x0 (libfirst.so)");
    CHECK(frame(symbols, id, program.at("outer")) == "outer+0x0 (program)");
}

TEST_CASE("after exec, addresses of the first program keep its symbols")
{
    Program program("program");
    const ImageId id = id_of(program.pid());
    StackNames symbols;
    CHECK(frame(symbols, id, program.at("outer")) == "outer+0x0 (program)");
    program.command("- " + fixtures().file("bare"));
    wait_for_refresh();
    CHECK(frame(symbols, id, 0x10) == "0x10");
    CHECK(frame(symbols, id, program.at("local")) == "local+0x0 (program)");
}

TEST_CASE("a process's own mount namespace is used")
{
    if (geteuid() != 0)
        SKIP("needs root");
    struct statx root {};
    if (statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, &root) != 0 || !(root.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        SKIP("mounts cannot be private in a chroot that is not a mount point");
    const std::string path = fixtures().file("libfirst.so");
    const auto bind = [] {
        return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount(fixtures().file("libother.so").c_str(), fixtures().file("libfirst.so").c_str(), nullptr, MS_BIND,
                     nullptr) == 0;
    };
    const Program inside("program", path, "other_call", bind);
    const Program outside("program", path, "first_call");
    StackNames symbols;
    CHECK(frame(symbols, id_of(inside.pid()), inside.at("other_call") + 4) == "other_call+0x4 (libfirst.so)");
    CHECK(frame(symbols, id_of(outside.pid()), outside.at("first_call") + 4) == "first_call+0x4 (libfirst.so)");
}

TEST_CASE("the vdso and libc have symbols, data has none")
{
    StackNames symbols;
    const ImageId id = id_of(getpid());
    void* const vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    void* const function = vdso ? dlsym(vdso, "__vdso_clock_gettime") : nullptr;
    if (function)
        CHECK(frame(symbols, id, reinterpret_cast<uint64_t>(function)) == "__vdso_clock_gettime+0x0 ([vdso])");
    const auto libc = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    CHECK(frame(symbols, id, libc + 1) == "gnu_get_libc_version+0x1 (libc.so.6)");
    const auto data = reinterpret_cast<uint64_t>(program_source); // not code
    CHECK(frame(symbols, id, data).starts_with("0x"));
    CHECK(symbols.frames(id, std::array{libc + 1, data, uint64_t{0x7070610065637564}}) ==
          Strings{"gnu_get_libc_version+0x1 (libc.so.6)"});
    CHECK(symbols.frames(id, std::array{libc + 1, data, libc + 2}).size() == 3); // data followed by code is kept
}

TEST_CASE("many images and many addresses are symbolized")
{
    const Program program("program");
    StackNames symbols;
    for (uint32_t serial = 0; serial < 200; serial++)
        CHECK(frame(symbols, id_of(program.pid(), serial), program.at("outer") + 4) == "outer+0x4 (program)");
    std::vector<uint64_t> addresses;
    for (uint64_t i = 0; i < 150'000; i++)
        addresses.push_back(program.at("outer") + i % 4096);
    CHECK(symbols.frames(id_of(program.pid(), 300), addresses).size() == addresses.size());
}

TEST_CASE("malformed files do no harm")
{
    const std::string path = fixtures().file("strange.so");
    const std::string good = contents(fixtures().file("libfirst.so"));
    std::mt19937 random(1);
    const auto ask = [&path](size_t size) {
        StackNames symbols;
        const Mapped mapped(path, size);
        for (uint64_t offset = 0; offset < size; offset += 64) {
            std::string text;
            // On a busy machine, a helper's answer may be late, so that only a later try gets it.
            for (int tries = 0; tries < 250 && text.find("strange.so") == std::string::npos; tries++) {
                if (tries)
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                text = frame(symbols, id_of(getpid()), mapped.address() + offset);
            }
            if (text.find("strange.so") == std::string::npos)
                FAIL(text);
        }
    };
    const auto put = [](const std::string& bytes) { fixtures().file("strange.so", bytes); };

    SECTION("not an ELF file")
    {
        put(std::string(8192, 'x'));
        StackNames symbols;
        const Mapped mapped(path, 8192);
        CHECK(frame(symbols, id_of(getpid()), mapped.address() + 0x1234) == "strange.so+0x1234");
    }
    SECTION("truncated")
    {
        for (size_t size = 1; size < good.size(); size += 97) {
            put(good.substr(0, size));
            ask(size);
        }
    }
    SECTION("larger than the limit")
    {
        put(good);
        std::filesystem::resize_file(path, (uint64_t(4) << 30) + 1);
        StackNames symbols;
        const Mapped mapped(path, 8192);
        CHECK(frame(symbols, id_of(getpid()), mapped.address() + 0x1100) == "strange.so+0x1100");
    }
    SECTION("unterminated names")
    {
        auto bad = good;
        Elf64_Ehdr header;
        std::memcpy(&header, bad.data(), sizeof(header));
        for (size_t i = 0; i < header.e_shnum; i++) {
            Elf64_Shdr section;
            std::memcpy(&section, bad.data() + header.e_shoff + i * sizeof(section), sizeof(section));
            if (section.sh_type == SHT_STRTAB && i != header.e_shstrndx)
                std::memset(bad.data() + section.sh_offset + 1, 'A', section.sh_size - 1);
        }
        put(bad);
        ask(bad.size());
    }
    SECTION("random damage")
    {
        Elf64_Ehdr header;
        std::memcpy(&header, good.data(), sizeof(header));
        for (int round = 0; round < 100; round++) {
            auto bad = good;
            // Half of the damage is in the headers.
            for (int i = 0; i < 1 + round % 8; i++) {
                const size_t table = header.e_shoff + random() % (header.e_shnum * sizeof(Elf64_Shdr));
                bad[i % 2 ? table : random() % bad.size()] = static_cast<char>(random());
            }
            put(bad);
            ask(bad.size());
        }
    }
}

TEST_CASE("the calling function is the first one outside of CUDA", "[stack_names]")
{
    CHECK(calling_function(Strings{"cuMemcpyHtoD_v2+0x20 (libcuda.so.1)", "cudaMemcpy+0xba (libcudart.so.12)",
                                   "train::step(float*)+0x45 (train)", "main+0x10 (train)"}) == "train::step (train)");
    CHECK(calling_function(Strings{"cudaMemcpy+0xba (train)", "custom(int)+0x45 (train)"}) == "custom (train)");
    CHECK(calling_function(Strings{"cudaMemcpy+0xba (libcudart.so.12)", "0x7f0000001000", "main+0x1 (train)"}).empty());
    CHECK(calling_function(Strings{"cudaMemcpy+0xba (libcudart.so.12)"}).empty());
    CHECK(calling_function(Strings{}).empty());
    CHECK(calling_function(Strings{"a\x1b[2J+0x1 (b)"}).find('\x1b') == std::string::npos);
}
