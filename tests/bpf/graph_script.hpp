// SPDX-License-Identifier: Apache-2.0
// Scripts of calls that build, capture, launch and destroy graphs.
#pragma once

#include "tests/bpf/fake_run.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// Names in a script stand for handles, which are reused like those of CUDA: the handle freed last is assigned first.
// Two scripts have no handle in common.
class GraphScript {
public:
    // prefix: "cu", "cuda" or "hip". Each call of the CUDA runtime makes the driver's call of the same name.
    explicit GraphScript(FakeRun& run, std::string prefix = "cu") : run_(run), prefix_(std::move(prefix)) {}

    // Makes the calls of steps that are separated by semicolons. A step is a verb (graph_script.cpp) with the names of
    // graphs (G), executable graphs (X) and events (E), and the numbers of streams (16):
    //   create G; clone G H; add G kernel; add G child of=H; instantiate G X; launch X on=16; update X G reason=3
    //   begin 16; kernel on=16; record E 16; wait E 17; end 16 G; drop X; destroy G
    // A number at the end is the number of calls. result=700: the function's result; fn=GraphAddNode: another function
    // than usual, without its prefix; is=G: the handle that the call returns.
    void play(std::string_view steps);

    uint64_t handle(std::string_view name) const { return handles_.at(std::string(name)); }
    // The name of a handle at this time, or "-" for none.
    std::string name(const json& handle) const;
    // Returns true for handles of this script's graphs.
    bool owns(const json& handle) const
    {
        return std::stoull(handle.get<std::string>(), nullptr, 16) / range == number_;
    }

private:
    void play_step(const std::string& step);
    void call(const std::string& function, const Arguments& arguments, uint64_t result);

    uint64_t address_of(uint64_t word);
    uint64_t new_handle();

    FakeRun& run_;
    std::string prefix_;
    std::map<std::string, uint64_t> handles_;
    std::vector<uint64_t> freed_;
    static constexpr uint64_t range = 1 << 20;
    static inline uint64_t scripts = 0x7f00'0000'0000 / range;
    uint64_t number_ = ++scripts, last_ = number_ * range;
};

} // namespace gpusnoop
