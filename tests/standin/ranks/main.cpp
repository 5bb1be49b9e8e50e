// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of a job: one process per rank, each of which makes the NCCL calls of a script.
//     ranks RANKS TRUTH SCRIPT
// Each rank runs the whole script, and writes a line of JSON per call to TRUTH.RANK at the end.
#include "../nccl/nccl.hpp"
#include "../workload/script.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <pthread.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
int cuInit(unsigned);
int cuCtxCreate_v2(void** context, unsigned flags, int device);
int cuStreamCreate(CUstream_st** stream, unsigned flags);
int cuStreamBeginCapture_v2(CUstream_st* stream, int mode);
int cuStreamSynchronize(CUstream_st* stream);
int cuStreamEndCapture(CUstream_st* stream, void** graph);
void standin_next_block_ns(uint64_t ns);
void standin_next_inside(void (*function)());
}

namespace {

using workload::Step;
using workload::Steps;

int my_rank, all_ranks;
pthread_barrier_t* barrier;
CUstream_st* stream; // stream that the next calls use
std::map<std::string, ncclComm_t> comms;
std::map<std::string, int> rank_in; // this process's rank in each communicator
int groups = 0;                     // groups started so far
int in_group = 0;                   // number of the current group; 0: none
bool capturing = false;
std::ostringstream truth_lines;

int64_t now_ns()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

ncclComm_t comm_of(const Step& step, size_t word)
{
    const auto found = comms.find(step.word(word));
    if (found == comms.end())
        wrong(step, "no such communicator");
    return found->second;
}

struct Function {
    std::string_view name;
    ncclResult_t (*call)(size_t count, int type, ncclComm_t comm);
};

int reduction = 0, root = 0; // arguments of the next call

#define FUNCTION(name, ...)                                                                                            \
    {                                                                                                                  \
#name, [](size_t n, int type, ncclComm_t comm) { return name(__VA_ARGS__, comm, stream); }                     \
    }
constexpr void* none = nullptr;
const Function functions[] = {
    FUNCTION(ncclAllReduce, none, none, n, type, reduction),
    FUNCTION(ncclReduce, none, none, n, type, reduction, root),
    FUNCTION(ncclBroadcast, none, none, n, type, root),
    FUNCTION(ncclBcast, none, n, type, root),
    FUNCTION(ncclAllGather, none, none, n, type),
    FUNCTION(ncclReduceScatter, none, none, n, type, reduction),
    FUNCTION(ncclAlltoAll, none, none, n, type),
    FUNCTION(ncclAllToAll, none, none, n, type),
    FUNCTION(ncclGather, none, none, n, type, root),
    FUNCTION(ncclScatter, none, none, n, type, root),
    FUNCTION(ncclSend, none, n, type, root),
    FUNCTION(ncclRecv, none, n, type, root),
};

// call COMM FUNCTION TIMES [count=N] [type=N] [reduction=N] [root=N] [result=N] [block=MS] [own=1: a new stream]
void call(const Step& step)
{
    const ncclComm_t comm = comm_of(step, 0);
    const auto* function = std::ranges::find(functions, step.word(1), &Function::name);
    if (function == std::end(functions))
        wrong(step, "no such function");
    const size_t count = step.number("count", 1024);
    const int type = static_cast<int>(step.number("type", 7));
    reduction = static_cast<int>(step.number("reduction", 0));
    root = static_cast<int>(step.number("root", 0));
    CUstream_st* const before = stream;
    if (step.has("own"))
        cuStreamCreate(&stream, 0);
    for (uint64_t i = 0; i < workload::to_number(step, step.word(2, "1")); i++) {
        if (step.has("result"))
            standinNcclReturns(static_cast<int>(step.number("result", 0)));
        if (step.has("block"))
            standinNcclBlocks(static_cast<unsigned>(step.number("block", 0)));
        const int64_t entry = now_ns();
        const int result = function->call(count, type, comm);
        truth_lines << "{\"pid\":" << getpid() << ",\"comm\":\"" << step.word(0)
                    << "\",\"rank\":" << rank_in[step.word(0)] << ",\"function\":\"" << function->name
                    << "\",\"count\":" << count << ",\"type\":" << type << ",\"entry_ns\":" << entry
                    << ",\"return_ns\":" << now_ns() << ",\"result\":" << result << ",\"stream\":\"" << stream
                    << "\",\"captured\":" << (capturing ? "true" : "false") << ",\"group\":" << in_group << "}\n";
    }
    stream = before;
}

// comm NAME [result=N]: creates a communicator; its id is derived from the name
void make_comm(const Step& step)
{
    if (step.has("result"))
        standinNcclReturns(static_cast<int>(step.number("result", 0)));
    standin::nccl::Id id{};
    strncpy(id.bytes, step.word(0).c_str(), sizeof(id.bytes) - 1);
    const pid_t job = getppid();
    memcpy(id.bytes + 64, &job, sizeof(job));
    ncclComm_t& comm = comms[step.word(0)];
    ncclCommInitRankConfig(&comm, all_ranks, id, my_rank, nullptr);
    rank_in[step.word(0)] = my_rank;
}

// ask COMM TIMES [error=N]: calls ncclCommGetAsyncError, which reports error N
void query_error(const Step& step)
{
    const ncclComm_t comm = comm_of(step, 0);
    standinNcclFails(comm, static_cast<int>(step.number("error", 0)));
    ncclResult_t error{};
    for (uint64_t i = 0; i < step.number(1); i++)
        ncclCommGetAsyncError(comm, &error);
}

// forge NEW OLD: creates an invalid copy of OLD, with a wrong magic number
void forge(const Step& step)
{
    auto* forged = new standin::nccl::Comm(*comm_of(step, 1));
    forged->start_magic = ~standin::nccl::magic;
    comms[step.word(0)] = forged;
    rank_in[step.word(0)] = my_rank;
}

// split NEW OLD INTO: splits into INTO communicators; ranks that are equal modulo INTO share one
void split(const Step& step)
{
    const int into = static_cast<int>(step.number(2));
    const int color = my_rank % into;
    rank_in[step.word(0)] = my_rank / into;
    standinNcclSplits(my_rank / into, (all_ranks - color + into - 1) / into);
    ncclComm_t made = nullptr;
    ncclCommSplit(comm_of(step, 1), color, my_rank, &made, nullptr);
    comms[step.word(0)] = made;
}

// group [result=N]
void group(const Step& step)
{
    in_group = ++groups;
    ncclGroupStart();
    run(step.body);
    if (step.has("result"))
        standinNcclReturns(static_cast<int>(step.number("result", 0)));
    ncclGroupEnd();
    in_group = 0;
}

void capture(const Step& step)
{
    void* graph = nullptr;
    cuStreamBeginCapture_v2(stream, 0);
    capturing = true;
    run(step.body);
    capturing = false;
    cuStreamEndCapture(stream, &graph);
}

void spin(const Step& step)
{
    for (const int64_t end = now_ns() + static_cast<int64_t>(step.number(0)) * 1'000'000; now_ns() < end;)
        ;
}

// Waits until all ranks have reached this step, then for the completion of the calls so far.
void finish(const Step&)
{
    pthread_barrier_wait(barrier);
    cuStreamSynchronize(stream);
}

void complete(const Step&)
{
    standin_next_inside([] { pthread_barrier_wait(barrier); });
    cuStreamSynchronize(stream);
}

// A wait for the device that takes N milliseconds.
void hang(const Step& step)
{
    standin_next_block_ns(step.number(0) * 1'000'000);
    cuStreamSynchronize(stream);
}

bool is_mine(const Step& step)
{
    return static_cast<uint64_t>(my_rank) == step.number(0);
}

using workload::with_block;
const workload::StepRow rows[] = {
    {"comm", make_comm, "result"},
    {"forge", forge},
    {"ask", query_error, "error"},
    {"split", split},
    {"call", call, "count type reduction root result block own"},
    {"group", group, "result", with_block},
    {"capture", capture, "", with_block},
    {"destroy", [](const Step& s) { ncclCommDestroy(comm_of(s, 0)); }},
    {"barrier", [](const Step&) { pthread_barrier_wait(barrier); }},
    {"finish", finish},
    {"complete", complete},
    {"hang", hang},
    {"spin", spin},
    {"only", [](const Step& s) { is_mine(s) ? run(s.body) : void(); }, "", with_block},
    {"except", [](const Step& s) { is_mine(s) ? void() : run(s.body); }, "", with_block},
    {"exit", [](const Step&) { _exit(0); }},
};

[[noreturn]] void run_rank(const Steps& steps, const std::string& truth)
{
    void* context = nullptr;
    cuInit(0);
    cuCtxCreate_v2(&context, 0, 0);
    cuStreamCreate(&stream, 0);
    run(steps);
    std::ofstream(truth + "." + std::to_string(my_rank)) << truth_lines.str();
    _exit(0);
}

pthread_barrier_t* make_barrier(unsigned count)
{
    void* const shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        workload::fail("cannot allocate shared memory");
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    auto* made = static_cast<pthread_barrier_t*>(shared);
    pthread_barrier_init(made, &attributes, count);
    return made;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 4 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: ranks RANKS TRUTH SCRIPT\n");
        return 2;
    }
    const Steps steps = workload::parse(argv[3], rows);
    all_ranks = atoi(argv[1]);
    barrier = make_barrier(static_cast<unsigned>(all_ranks));
    for (my_rank = 0; my_rank < all_ranks; my_rank++)
        if (fork() == 0)
            run_rank(steps, argv[2]);
    int status = 0, worst = 0;
    while (wait(&status) > 0)
        worst |= status;
    return worst != 0;
}
