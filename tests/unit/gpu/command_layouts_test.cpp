// SPDX-License-Identifier: Apache-2.0
#include "gpu/command_layouts.hpp"

#include "gpu/driver_names.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <sys/ioctl.h>
#include <tuple>

using namespace gpusnoop;

namespace {

uint32_t nvidia(uint32_t number, uint32_t size)
{
    return static_cast<uint32_t>(_IOC(_IOC_READ | _IOC_WRITE, 'F', number, size));
}

DriverVersion version(std::string_view text)
{
    return parse_driver_version(text).value();
}

std::optional<command_layout> layout(std::optional<DriverVersion> driver, command_space space, uint32_t request)
{
    for (auto [key, found] : command_layouts(driver))
        if (key.space == static_cast<uint32_t>(space) && key.request == request)
            return found;
    return std::nullopt;
}

// Returns the offset of the status, or -1 if the driver does not accept the request.
int status(std::string_view driver, command_space space, uint32_t request)
{
    auto found = layout(version(driver), space, request);
    return found ? found->status : -1;
}

std::string shown(const size_layout& size)
{
    return std::to_string(size.offset) + (size.in_parameters ? " parameters" : "") + (size.is_limit ? " limit" : "") +
           (size.is_virtual ? " virtual" : "");
}

// "none" if the size is unknown.
std::string shown_size(std::optional<DriverVersion> driver, command_space space, uint32_t request, uint32_t subject = 0)
{
    for (auto [key, found] : size_layouts(driver))
        if (key.command.space == static_cast<uint32_t>(space) && key.command.request == request &&
            key.subject == subject)
            return shown(found);
    return "none";
}

} // namespace

TEST_CASE("driver versions are parsed")
{
    CHECK(parse_driver_version("575.51.02") == DriverVersion{575, 51, 2});
    CHECK(parse_driver_version("515.57\n") == DriverVersion{515, 57, 0});
    CHECK(parse_driver_version(" 550.40.07 ") == DriverVersion{550, 40, 7});
    CHECK(version("535.98") < version("535.104.05"));
    for (auto bad : {"", " ", "575", "575.", ".51", "575.51.", "575.51.02.1", "575,51", "-1.2", "575.51.02-open",
                     "575.51 .02", "v575.51", "99999999999.1", "+5.1", "0x1.2"}) {
        CAPTURE(bad);
        CHECK(!parse_driver_version(bad));
    }
}

TEST_CASE("the struct of a control command is the same in all versions")
{
    for (auto driver : {"515.43.04", "535.43.02", "595.45.04", "620.06.00"}) {
        auto found = layout(version(driver), SPACE_NVIDIA, 0xc020462a);
        REQUIRE(found);
        CHECK(std::tuple(found->size, found->status, found->subject, found->parameters) == std::tuple(32, 28, 8, 16));
    }
    CHECK(layout(std::nullopt, SPACE_NVIDIA, 0xc020462a)->status == 28);
}

TEST_CASE("a changed layout applies from the first driver release that has it")
{
    auto alloc = [](uint32_t bytes) { return nvidia(0x2b, bytes); };
    CHECK(status("530.41.03", SPACE_NVIDIA, alloc(32)) == 24);
    CHECK(status("535.43.02", SPACE_NVIDIA, alloc(32)) == 28);
    CHECK(status("520.61.07", SPACE_NVIDIA, alloc(40)) == 32);
    CHECK(status("525.47.04", SPACE_NVIDIA, alloc(40)) == 36);
    CHECK(status("530.41.03", SPACE_NVIDIA, alloc(40)) == 36);
    CHECK(status("535.43.02", SPACE_NVIDIA, alloc(40)) == -1);
    CHECK(status("530.41.03", SPACE_NVIDIA, alloc(48)) == -1);
    CHECK(status("535.43.02", SPACE_NVIDIA, alloc(48)) == 40);

    CHECK(status("580.65.05", SPACE_NVIDIA, nvidia(0x57, 56)) == 48); // RM_MAP_MEMORY_DMA
    CHECK(status("580.65.05", SPACE_NVIDIA, nvidia(0x57, 64)) == -1);
    CHECK(status("580.65.06", SPACE_NVIDIA, nvidia(0x57, 64)) == 56);
    CHECK(status("545.29.06", SPACE_NVIDIA, nvidia(0x58, 40)) == 32); // RM_UNMAP_MEMORY_DMA
    CHECK(status("550.40.07", SPACE_NVIDIA, nvidia(0x58, 48)) == 40);
    CHECK(status("565.77", SPACE_NVIDIA, nvidia(217, 2600)) == 2592); // EXPORT_TO_DMABUF_FD
    CHECK(status("570.86.15", SPACE_NVIDIA, nvidia(217, 2608)) == 2600);

    CHECK(status("580.142", SPACE_UVM, 34) == 16); // UVM_FREE
    CHECK(status("590.44.01", SPACE_UVM, 34) == 8);
    CHECK(layout(version("590.44.01"), SPACE_UVM, 34)->size == 16);
    CHECK(status("550.40.07", SPACE_UVM, 33) == 1196); // UVM_MAP_EXTERNAL_ALLOCATION
    CHECK(status("550.40.53", SPACE_UVM, 33) == 9260);
    CHECK(status("545.29.06", SPACE_UVM, 42) == 32); // UVM_SET_PREFERRED_LOCATION
    CHECK(status("550.40.07", SPACE_UVM, 42) == 36);
    CHECK(status("580.142", SPACE_UVM, 28) == 24); // UVM_UNREGISTER_CHANNEL
    CHECK(status("590.44.01", SPACE_UVM, 28) == 8);
    CHECK(status("575.64.05", SPACE_UVM, 80) == -1); // UVM_DISCARD
    CHECK(status("580.65.06", SPACE_UVM, 80) == 24);
}

TEST_CASE("for an unknown driver, offsets that differ between versions are not guessed")
{
    for (uint32_t bytes : {32u, 40u}) {
        auto found = layout(std::nullopt, SPACE_NVIDIA, nvidia(0x2b, bytes));
        REQUIRE(found);
        CHECK(found->status == OFFSET_NONE);
        CHECK(found->subject == 12);
        CHECK(found->parameters == 16);
    }
    CHECK(layout(std::nullopt, SPACE_NVIDIA, nvidia(0x2b, 48))->status == 40);
    CHECK(layout(std::nullopt, SPACE_NVIDIA, nvidia(0x57, 56))->status == 48);
    CHECK(layout(std::nullopt, SPACE_NVIDIA, nvidia(0x57, 64))->status == 56);
    CHECK(layout(std::nullopt, SPACE_UVM, 34)->status == OFFSET_NONE);
    CHECK(layout(std::nullopt, SPACE_UVM, 34)->size == 16);
    CHECK(layout(std::nullopt, SPACE_UVM, 33)->status == OFFSET_NONE);
    CHECK(layout(std::nullopt, SPACE_UVM, 73)->status == 16);
    CHECK(shown_size(std::nullopt, SPACE_UVM, 34) == "none");
    CHECK(shown_size(std::nullopt, SPACE_NVIDIA, nvidia(0x2b, 48), 0xfd) == "none");
    CHECK(shown_size(std::nullopt, SPACE_UVM, 33) != "none");
    CHECK(shown_size(std::nullopt, SPACE_NVIDIA, nvidia(0x58, 48)) != "none");
}

TEST_CASE("the offsets of size fields depend on the command, class and function of a call")
{
    auto driver = version("575.51.02");
    const auto nvidia_size = [&](uint32_t request, uint32_t subject = 0) {
        return shown_size(driver, SPACE_NVIDIA, request, subject);
    };
    const auto rw = [](char type, uint32_t number, uint32_t size) {
        return static_cast<uint32_t>(_IOC(_IOC_READ | _IOC_WRITE, type, number, size));
    };
    CHECK(nvidia_size(nvidia(0x2b, 48), 0x40) == "64 parameters");
    CHECK(nvidia_size(nvidia(0x2b, 32), 0x3e) == "64 parameters");
    CHECK(nvidia_size(nvidia(0x2b, 48), 0x50a0) == "64 parameters virtual");
    CHECK(nvidia_size(nvidia(0x2b, 48), 0x70) == "8 parameters limit virtual");
    CHECK(nvidia_size(nvidia(0x2b, 48), 0xf8) == "8 parameters");
    CHECK(nvidia_size(nvidia(0x2b, 48), 0xfd) == "48 parameters virtual");
    CHECK(shown_size(version("535.43.02"), SPACE_NVIDIA, nvidia(0x2b, 48), 0xfd) == "8 parameters virtual");
    CHECK(nvidia_size(nvidia(0x27, 56), 0x71) == "32 limit");
    CHECK(nvidia_size(nvidia(0x4a, 184), 2) == "88");
    CHECK(nvidia_size(nvidia(0x4a, 184), 14) == "80");
    CHECK(nvidia_size(nvidia(0x4a, 184), 3) == "none");
    CHECK(nvidia_size(nvidia(0x4e, 56)) == "24");
    CHECK(nvidia_size(nvidia(0x57, 56)) == "24");
    CHECK(nvidia_size(nvidia(217, 2608)) == "24");
    CHECK(shown_size(driver, SPACE_UVM, 34) == "8");
    CHECK(shown_size(version("590.44.01"), SPACE_UVM, 34) == "none");
    CHECK(shown_size(driver, SPACE_UVM, 73) == "8 virtual");
    CHECK(shown_size(driver, SPACE_KFD, rw('K', 0x16, 40)) == "8");
    CHECK(shown_size(driver, SPACE_AMDGPU, rw('d', 0x40, 32)) == "0");
}

TEST_CASE("AMD's layouts do not depend on NVIDIA's driver version, and have the direction that amdgpu accepts")
{
    auto create_queue = [](uint32_t bytes) {
        return static_cast<uint32_t>(_IOC(_IOC_READ | _IOC_WRITE, 'K', 2, bytes));
    };
    for (auto driver : {std::optional<DriverVersion>(), std::optional(version("575.51.02"))}) {
        CHECK(layout(driver, SPACE_KFD, create_queue(88)));
        CHECK(layout(driver, SPACE_KFD, create_queue(96)));
        CHECK(layout(driver, SPACE_KFD, static_cast<uint32_t>(_IOC(_IOC_WRITE, 'K', 0x17, 8))));
        CHECK(!layout(driver, SPACE_KFD, static_cast<uint32_t>(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x17, 8))));
    }
}

TEST_CASE("every driver version has each request once, with offsets within the struct")
{
    for (auto text : {"", "515.43.04", "525.47.04", "535.43.02", "550.40.53", "560.28.03", "580.65.06", "595.45.04"}) {
        CAPTURE(text);
        auto driver = parse_driver_version(text);
        std::map<std::pair<uint32_t, uint32_t>, command_layout> known;
        for (auto [key, found] : command_layouts(driver)) {
            CAPTURE(key.space, key.request);
            CHECK(known.emplace(std::pair(key.space, key.request), found).second);
            CHECK((found.status == OFFSET_NONE || found.status + 4 <= found.size));
            CHECK((found.subject == OFFSET_NONE || found.subject + 4 <= found.size));
            CHECK((found.parameters == OFFSET_NONE || found.parameters + 8 <= found.size));
            auto number = key.space == SPACE_UVM ? key.request : _IOC_NR(key.request);
            CHECK(command_name(static_cast<command_space>(key.space), number) != "");
            if (key.space != SPACE_UVM)
                CHECK(_IOC_SIZE(key.request) == found.size);
        }
        std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_layout> sized;
        for (auto [key, found] : size_layouts(driver)) {
            CAPTURE(key.command.space, key.command.request, key.subject);
            CHECK(sized.emplace(std::tuple(key.command.space, key.command.request, key.subject), found).second);
            CHECK(key.zero == 0);
            auto command = known.find({key.command.space, key.command.request});
            REQUIRE(command != known.end());
            CHECK((found.in_parameters || found.offset + 8 <= command->second.size));
            CHECK((!found.in_parameters || command->second.parameters != OFFSET_NONE));
        }
    }
}

TEST_CASE("the first fields of structs are valid for future drivers, whatever the struct's size")
{
    std::map<uint32_t, command_layout> heads;
    for (auto [key, head] : command_heads()) {
        CAPTURE(key.request);
        CHECK(key.space == SPACE_NVIDIA);
        CHECK(heads.emplace(key.request, head).second);
        CHECK(command_name(SPACE_NVIDIA, key.request) != "");
        CHECK(head.status == OFFSET_NONE); // the status is at the end of the struct, so its offset depends on the size
        REQUIRE(head.subject != OFFSET_NONE);
        const int end = head.parameters == OFFSET_NONE ? head.subject + 4 : head.parameters + 8;
        CHECK(head.size == end);
        for (auto [whole, known] : command_layouts(std::nullopt))
            CHECK((whole.space != SPACE_NVIDIA || whole.request == key.request ||
                   _IOC_NR(whole.request) != key.request || known.subject == head.subject));
    }
    auto head = [&heads](uint32_t number) {
        REQUIRE(heads.contains(number));
        return std::tuple(heads[number].size, heads[number].subject, heads[number].parameters);
    };
    CHECK(head(0x2a) == std::tuple(24, 8, 16));                     // RM_CONTROL
    CHECK(head(0x2b) == std::tuple(24, 12, 16));                    // RM_ALLOC, the same in three sizes of its struct
    CHECK(head(0x27) == std::tuple(16, 12, uint16_t{OFFSET_NONE})); // RM_ALLOC_MEMORY
    CHECK(head(0x4a) == std::tuple(12, 8, uint16_t{OFFSET_NONE}));  // RM_VID_HEAP_CONTROL
    CHECK(!heads.contains(0x29));                                   // RM_FREE has only a handle
}

TEST_CASE("sizes behind a pointer are found in structs of future drivers")
{
    std::map<std::pair<uint32_t, uint32_t>, size_layout> found;
    for (auto [key, size] : size_heads()) {
        CAPTURE(key.command.request, key.subject);
        CHECK(key.command.space == SPACE_NVIDIA);
        CHECK(key.zero == 0);
        CHECK(size.in_parameters); // not in the struct itself, whose fields may move in a newer driver
        CHECK(found.emplace(std::pair(key.command.request, key.subject), size).second);
        CHECK(std::ranges::any_of(command_heads(), [&](const auto& head) {
            return head.first.request == key.command.request && head.second.parameters != OFFSET_NONE;
        }));
    }
    for (const auto& [request, subject, expected] :
         {std::tuple(0x2b, 0x40, "64 parameters"), std::tuple(0x2b, 0x3e, "64 parameters"),
          std::tuple(0x2b, 0x50a0, "64 parameters virtual"), std::tuple(0x2b, 0x71, "24 parameters limit")}) {
        REQUIRE(found.contains({request, subject}));
        CHECK(shown(found[{request, subject}]) == expected);
    }
    CHECK(!found.contains({0x2b, 0xfd})); // its struct has changed
    CHECK(!found.contains({0x4a, 2}));
    CHECK(!found.contains({0x27, 0x40}));
}
