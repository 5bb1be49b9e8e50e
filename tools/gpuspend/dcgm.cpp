// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/dcgm.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/read_text.hpp"
#include "base/text.hpp"
#include "tools/gpuspend/http_page.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint64_t pause_ns = 5 * second;
// The exporter looks every 30 s, unless it is told otherwise (DCGM_EXPORTER_INTERVAL).
constexpr uint64_t oldest_ns = 90 * second;

} // namespace

Dcgm::Dcgm(const std::string& where) : where_(where)
{
    if (where.find("://") != std::string::npos)
        service_.emplace(http_question("--dcgm", where, DcgmPage::largest));
}

void Dcgm::refresh(uint64_t now_ns)
{
    if (now_ns >= next_ns_) {
        next_ns_ = now_ns + pause_ns;
        if (service_)
            service_->ask(now_ns);
        else
            read_file(now_ns);
    }
    if (service_) {
        if (auto answer = service_->take(now_ns)) {
            if (answer->why_not.empty())
                answer = http_body(answer->text);
            answer->why_not.empty() ? take(answer->text, now_ns) : fail(answer->why_not);
        }
    }
    if (taken_ns_ && now_ns > taken_ns_ + oldest_ns)
        page_ = {};
}

void Dcgm::read_file(uint64_t now_ns)
{
    const Fd file(open(where_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0)
        return fail(errno_text(errno));
    if (!S_ISREG(st.st_mode))
        return fail("it is not a regular file");
    const auto changed_ns = static_cast<uint64_t>(st.st_mtim.tv_sec) * second;
    if (const uint64_t wall_ns = clock_ns(CLOCK_REALTIME); wall_ns > changed_ns + oldest_ns)
        return fail(fmt::format("it was written {} s ago", (wall_ns - changed_ns) / second));
    const auto text = read_text(file, DcgmPage::largest);
    if (!text)
        return fail(errno_text(errno));
    take(*text, now_ns);
}

void Dcgm::take(const std::string& text, uint64_t now_ns)
{
    if (text.size() > DcgmPage::largest)
        return fail(fmt::format("it is larger than {}", human_bytes(DcgmPage::largest)));
    DcgmPage page = parse_dcgm_page(text);
    if (page.devices.empty())
        return fail("it has no series of DCGM with the UUID of a GPU");
    page_ = std::move(page);
    taken_ns_ = now_ns;
    why_not_.clear();
}

void Dcgm::fail(std::string why)
{
    page_ = {};
    why_not_ = std::move(why);
    if (!std::exchange(complained_, true))
        warn(fmt::format("nothing is known from DCGM's page '{}': {}", printable(where_), why_not_));
}

const Gauges* Dcgm::of(std::string_view uuid, std::optional<uint32_t> gpu_instance) const
{
    const auto found = page_.devices.find({std::string(uuid), gpu_instance});
    return found == page_.devices.end() ? nullptr : &found->second;
}

} // namespace gpusnoop
