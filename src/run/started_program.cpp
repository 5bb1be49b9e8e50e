// SPDX-License-Identifier: Apache-2.0
#include "run/started_program.hpp"

#include "base/privileges.hpp"
#include "who/host_files.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr int not_found = 127, not_executable = 126, killed = 128;
constexpr char with_terminal = 'g', without_terminal = 's';

int status_of_error(int error)
{
    return error == ENOENT ? not_found : not_executable;
}

// Returns 0 if the file can be executed, otherwise the errno that states why not.
int execution_error(const std::string& path)
{
    struct stat st {};
    if (stat(path.c_str(), &st))
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path.c_str(), X_OK) ? errno : 0;
}

// Throws CannotStart if the program cannot be executed. Called before the slow loading, so that a typing error is
// reported at once.
void check_executable(const std::string& name)
{
    if (name.find('/') != std::string::npos) {
        if (const int error = execution_error(name))
            throw CannotStart(status_of_error(error), fmt::format("cannot start {}: {}", name, errno_text(error)));
        return;
    }
    const char* const path = getenv("PATH"); // NOLINT(concurrency-mt-unsafe)
    std::istringstream folders(path ? path : "/bin:/usr/bin");
    int refused = 0;
    for (std::string folder; std::getline(folders, folder, ':');) {
        const int error = execution_error((folder.empty() ? "." : folder) + '/' + name);
        if (!error)
            return;
        if (error == EACCES)
            refused = error;
    }
    if (refused)
        throw CannotStart(not_executable, fmt::format("cannot start {}: {}", name, errno_text(refused)));
    throw CannotStart(not_found, fmt::format("there is no program '{}' in PATH", name),
                      !name.empty() && !execution_error("./" + name)
                          ? fmt::format("to start the one in this folder, give ./{}", name)
                          : "give its path; sudo sets its own PATH");
}

// Closes the descriptors that hold_closed_streams() reserved.
void close_held_streams()
{
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (const int flags = fcntl(fd, F_GETFL); flags >= 0 && (flags & O_PATH))
            close(fd);
}

void detach_from_terminal()
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (isatty(fd))
            dup2(null, fd);
}

struct Identity {
    UserAccount account;
    std::vector<gid_t> groups;
};

Identity identity_of(const UserAccount& account)
{
    return {account, groups_of(HostFiles("/").read("etc/group").value_or(""), account)};
}

// Switches to the user permanently. Returns 0 or an errno. Sets the groups first, because setting the user id drops the
// capability that setgroups() needs.
int become(const Identity& to)
{
    const UserAccount& account = to.account;
    if (setgroups(to.groups.size(), to.groups.data()) || setresgid(account.gid, account.gid, account.gid) ||
        setresuid(account.uid, account.uid, account.uid))
        return errno;
    // Depending on securebits, capabilities may have been kept, so they are dropped explicitly.
    if (account.uid != 0 && (!keep_capabilities({}) || setresuid(0, 0, 0) == 0))
        return EPERM;
    setenv("HOME", account.home.c_str(), 1);    // NOLINT(concurrency-mt-unsafe): the only thread
    setenv("USER", account.name.c_str(), 1);    // NOLINT(concurrency-mt-unsafe)
    setenv("LOGNAME", account.name.c_str(), 1); // NOLINT(concurrency-mt-unsafe)
    setenv("SHELL", account.shell.empty() ? "/bin/sh" : account.shell.c_str(), 1); // NOLINT(concurrency-mt-unsafe)
    return 0;
}

// Code of the child process from fork to exec. Installs the gate's seccomp filter before changing the user, because
// that installation needs CAP_SYS_ADMIN.
[[noreturn]] void run_child(char* const* words, int from_tool, MappingGate* gate, const EndingSignals& signals,
                            const std::optional<Identity>& identity)
{
    signals.restore();
    char how = 0;
    ssize_t got = 0;
    do
        got = read(from_tool, &how, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(0); // the tool has exited
    close_held_streams();
    if (how == without_terminal)
        detach_from_terminal();
    int error = EIO; // used if the gatekeeper has exited
    if (!gate || gate->enter())
        error = identity ? become(*identity) : 0;
    if (!error) {
        execvp(words[0], words);
        error = errno;
    }
    send(from_tool, &error, sizeof(error), MSG_NOSIGNAL);
    _exit(status_of_error(error));
}

} // namespace

StartedProgram::StartedProgram(const std::vector<std::string>& words, const EndingSignals& signals,
                               const std::optional<MappingGate::Policy>& policy, const std::optional<UserAccount>& user)
    : name_(words.front()), as_user_(user ? fmt::format(" as user {}", user->name) : "")
{
    check_executable(name_);
    if (user && !(has_capability(CAP_SETUID) && has_capability(CAP_SETGID)))
        throw Error(fmt::format("cannot start {}{}: CAP_SETUID and CAP_SETGID are needed", name_, as_user_),
                    "run the tool as root");
    const std::optional<Identity> identity = user ? std::optional(identity_of(*user)) : std::nullopt;
    if (policy)
        gate_.emplace(*policy);
    std::vector<char*> arguments;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::array<int, 2> ends{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0) {
        to_child_ = Fd(ends[0]);
        const Fd from_tool(ends[1]);
        pid_ = fork();
        if (pid_ == 0) {
            to_child_ = {};
            run_child(arguments.data(), from_tool.get(), gate(), signals, identity);
        }
        if (gate_)
            gate_->forked();
    }
    if (pid_ < 0)
        throw Error(fmt::format("cannot start {}: {}", name_, errno_text(errno)));
}

StartedProgram::~StartedProgram()
{
    if (released_)
        return;
    to_child_ = {};
    waitpid(pid_, nullptr, 0);
}

void StartedProgram::release(bool silent)
{
    const char how = silent ? without_terminal : with_terminal;
    send(to_child_.get(), &how, 1, MSG_NOSIGNAL); // fails if the child was killed, which wait() will report
    released_ = true;
}

int StartedProgram::status_of(int waited)
{
    int error = 0;
    if (recv(to_child_.get(), &error, sizeof(error), MSG_DONTWAIT) == sizeof(error))
        warn(fmt::format("cannot start {}{}: {}", name_, as_user_, errno_text(error)));
    if (!WIFSIGNALED(waited))
        return WEXITSTATUS(waited);
    const int signal = WTERMSIG(waited);
    if (signal != SIGINT && signal != SIGTERM && signal != SIGHUP)
        warn(fmt::format("{} was killed by signal {} ({})", name_, signal, strsignal(signal)));
    return killed + signal;
}

int StartedProgram::wait(EndingSignals& signals)
{
    if (gate_)
        gate_->open();
    const Fd ended(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    for (bool passed_on = false, reported = false;;) {
        if (signals.arrived() && !std::exchange(passed_on, true) && signals.sent())
            kill(pid_, *signals.sent());
        int status = 0;
        const pid_t waited = waitpid(pid_, &status, ended && !passed_on ? WNOHANG : 0);
        if (waited == pid_)
            return status_of(status);
        if (waited < 0 && errno != EINTR)
            throw Error(fmt::format("cannot wait for {} to exit: {}", name_, errno_text(errno)));
        if (!std::exchange(reported, true))
            warn(fmt::format("tracing is done; waiting for {} to exit", name_));
        std::array<pollfd, 2> either{pollfd{ended.get(), POLLIN, 0}, pollfd{signals.descriptor(), POLLIN, 0}};
        poll(either.data(), either.size(), -1);
    }
}

} // namespace gpusnoop
