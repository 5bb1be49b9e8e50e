// SPDX-License-Identifier: Apache-2.0
#include "output/output.hpp"

namespace gpusnoop {
namespace {

class SilentOutput : public Output {
public:
    void start(std::string_view, std::string_view, std::optional<uint64_t>) override {}
    void banner(std::string_view) override {}
    void attached(uint64_t, uint64_t, std::string_view, ExtraLines) override {}
    void begin_table(std::span<const Column>, uint64_t, uint64_t) override {}
    void row(std::span<const Column>, const Row&, ExtraLines) override {}
    void event(std::span<const Column>, const Row&, ExtraLines) override {}
    void histogram(std::string_view, std::string_view, const Histogram&,
                   std::span<const std::pair<std::string_view, Cell>>, uint64_t, const BucketNotes&) override
    {}
    void lost(std::span<const Loss>) override {}
    void end(uint64_t) override {}
    void flush() override {}
};

} // namespace

std::unique_ptr<Output> make_silent_output()
{
    return std::make_unique<SilentOutput>();
}

} // namespace gpusnoop
