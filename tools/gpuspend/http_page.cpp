// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/http_page.hpp"

#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <strings.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr uint64_t patience_ns = 10'000'000'000; // as long as Prometheus waits for a page
constexpr size_t longest_head = 64 << 10;

} // namespace

LoopbackQuestion::About http_question(std::string_view option, std::string_view url, size_t largest)
{
    constexpr std::string_view scheme = "http://";
    std::string_view rest = url.substr(std::min(scheme.size(), url.size()));
    const std::string_view authority = rest.substr(0, std::min(rest.find('/'), rest.size()));
    rest.remove_prefix(authority.size());
    const size_t colon = authority.rfind(':');
    const bool has_port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
    const std::string_view host = authority.substr(0, has_port ? colon : authority.size());
    const std::string_view path = rest.empty() ? "/" : rest;
    LoopbackQuestion::About about{.port = 80,
                                  .family = host == "localhost" ? AF_UNSPEC
                                            : host == "[::1]"   ? AF_INET6
                                                                : AF_INET,
                                  .question = {},
                                  .largest = largest + longest_head,
                                  .patience_ns = patience_ns};
    bool good = url.starts_with(scheme) && (about.family != AF_INET || host == "127.0.0.1");
    if (has_port) {
        const std::string_view port = authority.substr(colon + 1);
        const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), about.port);
        good &= error == std::errc() && end == port.data() + port.size() && about.port != 0;
    }
    good &= std::ranges::all_of(path, [](char c) { return c > ' ' && c < 127; });
    if (!good)
        throw UsageError(fmt::format("{} asks this machine only, as in http://localhost:9400/metrics, and not '{}'",
                                     option, printable(url.substr(0, 200))));
    // HTTP/1.0, so that the body comes in one piece and ends with the connection.
    about.question = fmt::format("GET {} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain\r\n\r\n", path, authority);
    return about;
}

LoopbackAnswer http_body(std::string_view answer)
{
    const auto no = [](std::string why) { return LoopbackAnswer{.text = {}, .why_not = std::move(why)}; };
    const size_t head_end = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.") || head_end == std::string_view::npos || head_end > longest_head)
        return no("what listens there does not speak HTTP");
    const std::string_view head = answer.substr(0, head_end), body = answer.substr(head_end + 4);
    const std::string_view status = head.substr(0, head.find("\r\n"));
    if (status.substr(std::min(status.find(' '), status.size())).substr(0, 4) != " 200")
        return no(fmt::format("it answers '{}'", printable(status.substr(0, 100))));
    for (std::string_view rest = head; !rest.empty();) {
        const std::string_view line = rest.substr(0, std::min(rest.find("\r\n"), rest.size()));
        rest.remove_prefix(std::min(line.size() + 2, rest.size()));
        const auto is = [&](std::string_view key) {
            return line.size() > key.size() && strncasecmp(line.data(), key.data(), key.size()) == 0;
        };
        constexpr std::string_view length = "content-length:";
        if (is("transfer-encoding:"))
            return no("its answer is in pieces, which were not asked for");
        if (!is(length))
            continue;
        size_t said = 0;
        const size_t from = std::min(line.find_first_not_of(' ', length.size()), line.size());
        std::from_chars(line.data() + from, line.data() + line.size(), said);
        if (said != body.size())
            return no("its answer is not whole");
    }
    return {.text = std::string(body)};
}

} // namespace gpusnoop
