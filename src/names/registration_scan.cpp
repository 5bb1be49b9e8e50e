// SPDX-License-Identifier: Apache-2.0
#include "names/registration_scan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace gpusnoop {
namespace {

constexpr uint64_t piece_size = 1 << 20;
constexpr uint64_t searched_max = 1 << 30;     // bytes of code searched per pass; cuBLASLt 13.0 has 110 MB
constexpr uint64_t decoded_max = 32 << 20;     // bytes of code decoded per scan, in total
constexpr uint32_t longest_window = 512;       // maximum bytes between two calls to the same function
constexpr uint32_t first_window = 128;         // maximum bytes decoded before any other call
constexpr uint64_t max_names_read = 128 << 20; // total bytes of names, including repeated reads
constexpr size_t max_scanned_name = 16 << 10;
constexpr size_t targets_max = 64 << 10; // in files without symbols: maximum number of candidate functions
constexpr size_t trials = 64;            // calls examined per candidate
constexpr size_t candidates_max = 8;     // candidates examined, those with the most calls first

// Positions of the arguments of __cudaRegisterFunction and __cudaGetKernel, counted from 0.
constexpr size_t stub_argument = 1;
constexpr size_t name_argument = 3;
constexpr size_t variable_argument = 0;

// Functions whose calls are searched for. In HIP 5 to 7, calls of the registration function suffice to name all
// handles: a handle is the address of the registered variable.
constexpr std::string_view functions_of_cuda[] = {"__cudaRegisterFunction", "__cudaGetKernel"};
constexpr std::string_view functions_of_hip[] = {"__hipRegisterFunction"};
enum Function : size_t { register_function, get_kernel };

// True for mangled and extern "C" names, with the suffixes that compilers add (".kd", "$_0").
bool is_kernel_name(std::string_view name)
{
    return !name.empty() && (name[0] < '0' || name[0] > '9') && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '$';
    });
}

// Addresses by which a file's code can call a function.
struct Target {
    std::set<uint64_t> entries; // the function itself, and the linker stubs that jump to it
    std::set<uint64_t> slots;   // addresses of pointers to the function

    bool empty() const { return entries.empty() && slots.empty(); }
    bool matches(const Branch& b) const
    {
        return b.kind == Branch::call ? entries.contains(b.target)
                                      : b.kind == Branch::call_through && slots.contains(b.target);
    }
};

struct Site {
    CallSite site;
    Decoder::Arguments arguments{};
};

std::optional<Decoder::Arguments> arguments_at(const ElfImage& image, const Decoder& decoder, const CallSite& site)
{
    uint8_t bytes[longest_window];
    if (site.window > sizeof(bytes) || site.window > site.address)
        return std::nullopt;
    const std::span<uint8_t> window(bytes, site.window);
    const uint64_t start = site.address - site.window;
    return image.read(start, window) == site.window ? decoder.arguments({window, start}) : std::nullopt;
}

class Scan {
public:
    explicit Scan(const Elf& elf)
        : elf_(elf), image_(elf), decoder_(host_decoder()), hip_(elf.has_section(".hipFatBinSegment"))
    {}

    Registrations run();

private:
    void find_targets();
    void find_linker_stubs();
    Target most_called(const std::map<uint64_t, std::vector<uint64_t>>& starts_by_target, Function function);
    Target find_register_function();
    Target find_get_kernel();
    std::vector<Site> sites_of(const Target& target, Function function);
    bool fits(Function function, const Decoder::Arguments& arguments);
    std::string name_at(uint64_t address);
    Site read_site(uint64_t address, uint64_t previous, Function function);
    std::optional<uint64_t> value(const Argument& argument) const;
    std::optional<Branch> call_after(uint64_t address);
    void learn_pointers(const std::vector<Site>& sites);
    void read_kernels(const std::vector<Site>& sites);
    void drop_repeated();
    void read_handles(const std::vector<Site>& sites);

    template<class Search>
    void each_piece(Search search) const;

    const Elf& elf_;
    ElfImage image_;
    const Decoder& decoder_;
    bool hip_;
    Target targets_[std::size(functions_of_cuda)];
    std::unordered_map<uint64_t, uint64_t> pointers_; // address -> the pointer there after relocation
    Registrations found_;
    uint64_t decoded_ = 0;
    uint64_t names_read_ = 0;
};

// Visits all code in pieces, which overlap so that no instruction is missed.
template<class Search>
void Scan::each_piece(Search search) const
{
    std::vector<uint8_t> piece(piece_size + Decoder::overlap);
    uint64_t searched = 0;
    for (const Part& part : elf_.code()) {
        for (uint64_t at = 0; at < part.size && searched < searched_max; at += piece_size, searched += piece_size) {
            const std::span<uint8_t> to(piece.data(), std::min<uint64_t>(piece.size(), part.size - at));
            search(Code{to.first(elf_.read(part.file_offset + at, to)), part.address + at});
        }
    }
}

void Scan::find_targets()
{
    const std::span<const std::string_view> functions =
        hip_ ? std::span<const std::string_view>(functions_of_hip) : functions_of_cuda;
    const auto slots = image_.slots(functions);
    for (size_t i = 0; i < functions.size(); i++)
        targets_[i].slots.insert(slots[i].begin(), slots[i].end());
    if (!targets_[register_function].slots.empty()) {
        find_linker_stubs();
        return;
    }
    for (const Symbol& symbol : elf_.functions(functions))
        targets_[symbol.name == functions[register_function] ? register_function : get_kernel].entries.insert(
            symbol.address);
}

void Scan::find_linker_stubs()
{
    each_piece([&](const Code& code) {
        decoder_.branches(code, [&](const Branch& b) {
            if (b.kind != Branch::jump_through)
                return;
            for (Target& target : targets_)
                if (target.slots.contains(b.target) && target.entries.size() < trials)
                    for (const uint64_t entry :
                         decoder_.stub_entries(b.address, code.bytes.first(b.address - code.address)))
                        target.entries.insert(entry);
        });
    });
}

std::optional<uint64_t> Scan::value(const Argument& argument) const
{
    if (argument.kind == Argument::constant)
        return argument.value;
    const auto known = argument.kind == Argument::loaded ? pointers_.find(argument.value) : pointers_.end();
    return known != pointers_.end() ? std::optional(known->second) : std::nullopt;
}

// True if these may be the arguments of a call to the function. Accepts loaded pointers whose values are not known yet,
// because all pointers are resolved together later.
bool Scan::fits(Function function, const Decoder::Arguments& arguments)
{
    const auto may_be = [&](size_t i, auto&& good) {
        const auto known = value(arguments[i]);
        return known ? good(*known) : arguments[i].kind == Argument::loaded;
    };
    const bool stub =
        may_be(stub_argument, [&](uint64_t at) { return hip_ ? image_.writable(at) : image_.executable(at); });
    if (function == get_kernel)
        return stub && may_be(variable_argument, [&](uint64_t at) { return image_.writable(at); });
    return stub && may_be(name_argument, [&](uint64_t at) { return is_kernel_name(name_at(at)); });
}

std::string Scan::name_at(uint64_t address)
{
    if (names_read_ > max_names_read)
        return {};
    std::string name = image_.string_at(address, max_scanned_name);
    names_read_ += name.empty() ? max_scanned_name : name.size();
    return name;
}

// previous: address of the instruction after the previous call; 0 if there is none.
Site Scan::read_site(uint64_t address, uint64_t previous, Function function)
{
    const auto attempt = [&](uint64_t window) -> std::optional<Site> {
        Site site{{address, static_cast<uint32_t>(window)}, {}};
        decoded_ += window;
        const auto arguments = decoded_ <= decoded_max ? arguments_at(image_, decoder_, site.site) : std::nullopt;
        if (!arguments || !fits(function, *arguments))
            return std::nullopt;
        site.arguments = *arguments;
        return site;
    };
    if (previous != 0 && address - previous <= longest_window)
        if (const auto site = attempt(address - previous))
            return *site;
    // The instruction boundaries before the call are unknown, so every byte offset is tried as the start. From a wrong
    // start, the decoder either soon reaches a real boundary, or finds no valid arguments and the next start is tried.
    for (uint64_t window = std::min<uint64_t>(first_window, address); window > 0; window--)
        if (const auto site = attempt(window))
            return *site;
    return {{address, 0}, {}};
}

std::vector<Site> Scan::sites_of(const Target& target, Function function)
{
    std::vector<std::pair<uint64_t, uint64_t>> calls; // address of a call, address of the next instruction
    if (!target.empty())
        each_piece([&](const Code& code) {
            decoder_.branches(code, [&](const Branch& b) {
                if (target.matches(b) && calls.size() < registrations_max)
                    calls.emplace_back(b.address, b.next);
            });
        });
    std::ranges::sort(calls);
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end()); // pieces overlap, so calls may be found twice
    std::vector<Site> sites;
    uint64_t previous = 0;
    for (const auto& [address, next] : calls) {
        sites.push_back(read_site(address, previous <= address ? previous : 0, function));
        previous = next;
    }
    return sites;
}

std::optional<Branch> Scan::call_after(uint64_t address)
{
    uint8_t bytes[96];
    const std::span<uint8_t> code(bytes, image_.read(address, bytes));
    decoded_ += code.size();
    return decoded_ <= decoded_max / 2 ? decoder_.first_call({code, address}) : std::nullopt;
}

// Examines the functions with the most calls, in descending order of their number of calls. Returns the first function
// for which at least three quarters of the examined calls have valid arguments.
Target Scan::most_called(const std::map<uint64_t, std::vector<uint64_t>>& starts_by_target, Function function)
{
    std::vector<std::pair<size_t, uint64_t>> candidates;
    for (const auto& [target, calls] : starts_by_target)
        candidates.emplace_back(calls.size(), target);
    std::ranges::sort(candidates, std::greater());
    candidates.resize(std::min(candidates.size(), candidates_max));
    for (const auto& [count, target] : candidates) {
        const std::vector<uint64_t>& calls = starts_by_target.at(target);
        const size_t tried = std::min(calls.size(), trials);
        const auto good = std::count_if(calls.begin(), calls.begin() + static_cast<ptrdiff_t>(tried),
                                        [&](uint64_t call) { return read_site(call, 0, function).site.window != 0; });
        if (static_cast<size_t>(good) * 4 >= tried * 3)
            return {{target}, {}};
    }
    return {};
}

// Finds __cudaRegisterFunction in a file without symbols. Callers pass -1 to it as the maximum number of threads per
// block.
Target Scan::find_register_function()
{
    std::map<uint64_t, std::vector<uint64_t>> calls;
    each_piece([&](const Code& code) {
        decoder_.minus_ones(code, [&](uint64_t at) {
            const auto call = call_after(at);
            if (call && image_.executable(call->target) &&
                (calls.size() < targets_max || calls.contains(call->target)) &&
                calls[call->target].size() < trials * trials)
                calls[call->target].push_back(call->address);
        });
    });
    return most_called(calls, register_function);
}

// Finds __cudaGetKernel in a file without symbols. Callers pass the addresses of a variable and of a registered stub to
// it.
Target Scan::find_get_kernel()
{
    std::map<uint64_t, std::vector<uint64_t>> calls;
    each_piece([&](const Code& code) {
        decoder_.addresses(code, [&](uint64_t at, uint64_t value) {
            if (!found_.kernel(value))
                return;
            const auto call = call_after(at);
            if (call && !targets_[register_function].matches(*call) && image_.executable(call->target) &&
                (calls.size() < targets_max || calls.contains(call->target)) &&
                calls[call->target].size() < trials * trials)
                calls[call->target].push_back(call->address);
        });
    });
    return most_called(calls, get_kernel);
}

void Scan::learn_pointers(const std::vector<Site>& sites)
{
    std::vector<uint64_t> addresses;
    for (const Site& site : sites)
        for (const Argument& argument : site.arguments)
            if (argument.kind == Argument::loaded)
                addresses.push_back(argument.value);
    pointers_.merge(image_.pointers(addresses));
}

void Scan::read_kernels(const std::vector<Site>& sites)
{
    learn_pointers(sites);
    found_.sites = sites.size();
    for (const Site& site : sites) {
        const auto stub = value(site.arguments[stub_argument]);
        const auto name = value(site.arguments[name_argument]);
        if (stub && name && fits(register_function, site.arguments))
            found_.kernels.push_back({*stub, *name, site.site});
    }
    found_.read = found_.kernels.size();
    drop_repeated();
}

// Keeps one registration per stub. A template kernel may be registered several times, by each object file that contains
// it. A stub that is registered for two kernels is ambiguous and dropped; this happens if the linker has folded
// identical code.
void Scan::drop_repeated()
{
    std::ranges::stable_sort(found_.kernels, {}, &Registration::stub);
    std::vector<Registration> once;
    std::set<uint64_t> ambiguous;
    for (const Registration& r : found_.kernels) {
        if (once.empty() || once.back().stub != r.stub)
            once.push_back(r);
        else if (r.name != once.back().name && name_at(r.name) != name_at(once.back().name))
            ambiguous.insert(r.stub);
    }
    std::erase_if(once, [&](const Registration& r) { return ambiguous.contains(r.stub); });
    found_.kernels = std::move(once);
}

void Scan::read_handles(const std::vector<Site>& sites)
{
    learn_pointers(sites);
    for (const Site& site : sites) {
        const auto variable = value(site.arguments[variable_argument]);
        const auto stub = value(site.arguments[stub_argument]);
        if (variable && stub && fits(get_kernel, site.arguments) && found_.kernel(*stub))
            found_.handles.push_back({*variable, *stub, site.site});
    }
    std::ranges::stable_sort(found_.handles, {}, &HandleVariable::variable);
    const auto same = [](const HandleVariable& a, const HandleVariable& b) { return a.variable == b.variable; };
    found_.handles.erase(std::unique(found_.handles.begin(), found_.handles.end(), same), found_.handles.end());
}

Registrations Scan::run()
{
    find_targets();
    const bool found = !targets_[register_function].empty();
    if (!found && elf_.has_section(".nvFatBinSegment"))
        targets_[register_function] = find_register_function();
    read_kernels(sites_of(targets_[register_function], register_function));
    if (!found && !found_.kernels.empty())
        targets_[get_kernel] = find_get_kernel();
    read_handles(sites_of(targets_[get_kernel], get_kernel));
    return std::move(found_);
}

// Returns the argument values at the call site, read from the file.
std::optional<std::array<uint64_t, Decoder::arguments_known>> values_at(const ElfImage& image, const CallSite& site)
{
    const auto arguments = arguments_at(image, host_decoder(), site);
    if (!arguments)
        return std::nullopt;
    std::array<uint64_t, Decoder::arguments_known> values{};
    for (size_t i = 0; i < values.size(); i++) {
        const Argument& argument = (*arguments)[i];
        if (argument.kind == Argument::constant)
            values[i] = argument.value;
        else if (argument.kind == Argument::loaded)
            for (const auto& [at, pointer] : image.pointers({{argument.value}}))
                values[i] = pointer;
    }
    return values;
}

} // namespace

Registrations scan_registrations(const Elf& elf)
{
    return Scan(elf).run();
}

std::string registered_name(const ElfImage& image, const Registration& registration)
{
    const auto values = values_at(image, registration.site);
    if (!values || (*values)[stub_argument] != registration.stub || (*values)[name_argument] != registration.name)
        return {};
    std::string name = image.string_at(registration.name, max_scanned_name);
    return is_kernel_name(name) ? name : std::string();
}

bool keeps_handle(const ElfImage& image, const HandleVariable& handle)
{
    const auto values = values_at(image, handle.site);
    return values && (*values)[variable_argument] == handle.variable && (*values)[stub_argument] == handle.stub;
}

} // namespace gpusnoop
