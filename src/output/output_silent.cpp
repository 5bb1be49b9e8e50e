// SPDX-License-Identifier: Apache-2.0
#include "rows/output.hpp"

namespace gpusnoop {
namespace {

class SilentOutput : public Output {
public:
    void banner(std::string_view) override {}
    void row(std::span<const Column>, const Row&, ExtraLines) override {}
    void lost(std::span<const Loss>) override {}
    void flush() override {}
};

} // namespace

std::unique_ptr<Output> make_silent_output()
{
    return std::make_unique<SilentOutput>();
}

} // namespace gpusnoop
