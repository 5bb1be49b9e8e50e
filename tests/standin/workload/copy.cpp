// SPDX-License-Identifier: Apache-2.0
// The step "copy": finds source and destination, prepares the arguments in every form that a function may take, makes
// the calls, and records them in the truth.
#include "copy.hpp"

#include "calls.hpp"
#include "kernels.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <sstream>

namespace workload {
namespace {

using standin::MemoryType;

constexpr int host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3, by_address = 4;

bool is_batch(const CopyRow& row)
{
    return row.form == Form::batch || row.form == Form::volumes;
}

std::vector<size_t> numbers(const Step& step, const std::string& key)
{
    std::vector<size_t> out;
    std::istringstream in(step.option(key, ""));
    for (std::string part; std::getline(in, part, ',');)
        out.push_back(to_number(step, part));
    return out;
}

Side side_of(MemoryType type, Side otherwise)
{
    switch (type) {
    case MemoryType::host:
        return Side::host;
    case MemoryType::device:
        return Side::device;
    case MemoryType::array:
        return Side::array;
    default:
        return otherwise;
    }
}

MemoryType type_of(const Memory& memory)
{
    bool on_device = memory.kind == "device" || memory.kind == "vmm";
    return memory.side == Side::array ? MemoryType::array
           : on_device                ? MemoryType::device
           : memory.kind == "managed" ? MemoryType::unified
                                      : MemoryType::host;
}

// Finds source and destination of the copy; by default, it is from host to device.
void find_memory(Request& r, const Step& step, const CopyRow& row)
{
    Side from = row.from, to = row.to;
    if (step.has("kind")) {
        if (row.direction_from != DirectionFrom::kind)
            wrong(step, "this function takes no kind");
        r.kind = static_cast<int>(step.number("kind", 0));
        if (from == Side::unknown)
            from = r.kind == device_to_host || r.kind == device_to_device ? Side::device : Side::host;
        if (to == Side::unknown)
            to = r.kind == device_to_host || r.kind == host_to_host ? Side::host : Side::device;
    }
    r.to = memory(step, "dst", to == Side::unknown ? Side::device : to);
    if (row.direction_from != DirectionFrom::set && row.direction_from != DirectionFrom::prefetch)
        r.from = memory(step, "src", from == Side::unknown ? Side::host : from);
    r.from_type = type_of(r.from);
    r.to_type = type_of(r.to);
    if (!step.has("kind")) {
        bool known = r.from.side != Side::unknown && r.to.side != Side::unknown;
        r.kind = known ? 2 * (r.from.side != Side::host) + (r.to.side != Side::host) : by_address;
    }
}

void find_sizes(Request& r, const Step& step, const CopyRow& row)
{
    bool flat = row.form == Form::linear || row.form == Form::batch;
    bool deep = row.form == Form::volume || row.form == Form::volumes;
    if (step.has("sizes") != is_batch(row) && step.has("sizes"))
        wrong(step, "this function takes no sizes");
    if (step.has("bytes") || flat)
        r.width =
            step.number("bytes", step.number("width", 1024) * step.number("height", 1) * step.number("depth", 1)) /
            (step.has("bytes") ? row.element : 1);
    else {
        r.width = step.number("width", 64);
        r.height = step.number("height", 16);
        r.depth = deep ? step.number("depth", row.form == Form::volume ? 2 : 1) : 1;
    }
    if (is_batch(row)) {
        r.sizes = numbers(step, "sizes");
        if (r.sizes.empty())
            r.sizes = {r.width, r.width};
    }
}

std::string direction_name(Side from, Side to)
{
    if (from == Side::unknown || to == Side::unknown)
        return "unknown";
    auto letter = [](Side side) { return side == Side::host ? "h" : "d"; };
    return std::string(letter(from)) + "2" + letter(to);
}

std::string direction(const Request& r, const CopyRow& row)
{
    static const char* kinds[] = {"h2h", "h2d", "d2h", "d2d"};
    switch (row.direction_from) {
    case DirectionFrom::set:
        return "set";
    case DirectionFrom::prefetch:
        return "prefetch";
    case DirectionFrom::peer:
        return "p2p";
    case DirectionFrom::name:
        return direction_name(row.from, row.to);
    case DirectionFrom::kind:
        return r.kind < by_address ? kinds[r.kind] : direction_name(r.from.side, r.to.side);
    case DirectionFrom::types:
        return direction_name(side_of(r.from_type, r.from.side), side_of(r.to_type, r.to.side));
    case DirectionFrom::memory:
        return direction_name(r.from.side, r.to.side);
    }
    return {};
}

Data data_of(const Request& r, const CopyRow& row)
{
    Data data;
    data.copies = is_batch(row) ? r.sizes.size() : 1;
    data.direction = direction(r, row);
    data.source = r.from.kind;
    data.destination = r.to.kind;
    data.bytes = r.width * r.height * r.depth * row.element;
    if (is_batch(row)) {
        data.bytes = 0;
        for (size_t size : r.sizes) {
            data.sizes.push_back(row.form == Form::volumes ? size * r.height * r.depth : size);
            *data.bytes += data.sizes.back();
        }
    }
    return data;
}

// Driver function that the runtime calls: for instance, cuMemcpy%Async and the kind host to device ->
// cuMemcpyHtoDAsync_v2.
std::string nested_function(const CopyRow& row, int kind)
{
    static const char* names[] = {"", "HtoD", "DtoH", "DtoD", ""};
    std::string name = row.nested;
    if (auto percent = name.find('%'); percent != std::string::npos) {
        name.replace(percent, 1, names[kind]);
        if (*names[kind])
            name += "_v2";
    }
    return name;
}

const char* kind_of(const CopyRow& row)
{
    return row.direction_from == DirectionFrom::set        ? "set"
           : row.direction_from == DirectionFrom::prefetch ? "prefetch"
                                                           : "copy";
}

Request request(const Step& step, const CopyRow& row, bool asynchronous)
{
    Request r;
    find_memory(r, step, row);
    find_sizes(r, step, row);
    if (r.kind < 0 || r.kind > by_address)
        wrong(step, "kind must be 0 to 4");
    r.location = {standin::Location::device, device()};
    r.stream = asynchronous ? stream(step) : nullptr;
    fill_structures(r);
    return r;
}

} // namespace

// copy COUNT fn=FUNCTION [dst=] [src=] [bytes=] and other options
void copy(const Step& step)
{
    auto function = step.option("fn", runtime_major ? "cudaMemcpy" : "cuMemcpy");
    const CopyRow* row = find_copy_row(function);
    if (!row)
        wrong(step, function + " does not copy, set or prefetch");
    bool by_runtime = is_runtime(function);
    Pace pace(step);
    if (!by_runtime)
        ready_driver();

    bool asynchronous = function.find("Async") != std::string::npos;
    Request r = request(step, *row, asynchronous);
    Call call = call_of(function, kind_of(*row));
    call.stream = reinterpret_cast<uintptr_t>(r.stream);
    call.data = data_of(r, *row);
    call.synchronous = !asynchronous;
    void* target = symbol(function);
    auto results = make_calls<Timed::yes>(pace, step.number(0), [&] { return row->call(target, r); });
    if (!by_runtime)
        return add_results(call, results, pace);

    auto driver_function = nested_function(*row, r.kind);
    Call nested = nested_call(call, driver_function);
    if (driver_function == "cuMemcpy" || driver_function == "cuMemcpyAsync")
        nested.data->direction = direction_name(r.from.side, r.to.side); // the kind does not affect it
    add_results(call, results, pace, nested);
}

} // namespace workload
