// SPDX-License-Identifier: Apache-2.0
// The step "churn": many random allocations and frees, at full speed. All threads of a step share one pool, so a thread
// may free memory that another thread allocated.
#include "alloc.hpp"
#include "kernels.hpp"
#include "session.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <atomic>
#include <mutex>
#include <random>
#include <sstream>

namespace workload {
namespace {

struct Item {
    void* address;
    unsigned function, size;
    size_t bytes;
};

// The memory that a step currently holds, shared by its threads.
class Pool {
public:
    uint64_t join() { return joined_++; } // returns the number of this thread
    size_t size()
    {
        std::lock_guard hold(lock_);
        return items_.size();
    }
    void put(const Item& item)
    {
        std::lock_guard hold(lock_);
        items_.push_back(item);
    }
    std::optional<Item> remove_random(uint64_t random)
    {
        std::lock_guard hold(lock_);
        if (items_.empty())
            return {};
        std::swap(items_[random % items_.size()], items_.back());
        Item item = items_.back();
        items_.pop_back();
        return item;
    }

private:
    std::atomic<uint64_t> joined_{0};
    std::mutex lock_;
    std::vector<Item> items_;
};

Pool& pool_of(const Step& step)
{
    static std::mutex lock;
    static std::map<const Step*, Pool> pools; // one per step, shared by all threads that run the step
    std::lock_guard hold(lock);
    return pools[&step];
}

struct Function {
    const AllocRow* row;
    const FreeRow* free_row;
    std::string name, free_name;
    void *call, *free_call;
};

std::vector<Function> functions(const Step& step)
{
    std::vector<Function> out;
    std::istringstream in(step.option("fn", runtime_major ? "cudaMalloc" : "cuMemAlloc_v2"));
    for (std::string name; std::getline(in, name, ',');) {
        const AllocRow* row = find_alloc_row(name);
        if (!row || row->source != Source::none || is_physical(*row) || registers(*row) || !*row->kind)
            wrong(step, "churn does not support " + name);
        std::string free_by = row->free_by + suffix(is_async(row->free_by) ? name : "");
        out.push_back({row, find_free_row(free_by), row->function() + suffix(name), free_by,
                       symbol(row->function() + suffix(name)), symbol(free_by)});
    }
    return out;
}

class Churn {
public:
    explicit Churn(const Step& step)
        : pace_(Step{}), functions_(functions(step)), pool_(pool_of(step)), held_(step.number("held", 1000)),
          fail_(step.number("fail", 0)), random_(0x9e3779b97f4a7c15 + pool_.join())
    {
        std::mt19937_64 sizes(1); // same sizes in all threads
        for (int i = 0; i < 32; i++)
            sizes_.push_back(1 + sizes() % 1'000'000 / 2 * 2);
        if (fail_ > 90)
            wrong(step, "fail must be at most 90");
        arm_ = fail_ ? symbol("standin_next_result") : nullptr;
        for (size_t f = 0; f < functions_.size(); f++)
            for (size_t size : sizes_)
                requests_.push_back(make_request(size));
        granted_.resize(requests_.size());
        allocations_.resize(requests_.size());
        frees_.resize(requests_.size());
    }

    void run(uint64_t pairs, bool keep)
    {
        for (uint64_t left = pairs; left && !stopping();) {
            size_t now = pool_.size();
            if (now < held_ / 2 || (now < held_ && random_() & 1))
                left -= allocate();
            else
                free_one();
        }
        while (!keep && free_one())
            ;
    }

    void add_to_truth()
    {
        for (unsigned f = 0; f < functions_.size(); f++)
            for (unsigned s = 0; s < sizes_.size(); s++) {
                const auto& [row, free_row, name, free_name, call, free_call] = functions_[f];
                add_to_truth(f, s, "alloc", name, allocations_[index(f, s)], row->nested);
                add_to_truth(f, s, "free", free_name, frees_[index(f, s)], free_row->nested);
            }
    }

private:
    size_t index(unsigned function, unsigned size) const { return function * sizes_.size() + size; }

    AllocRequest make_request(size_t bytes) const
    {
        AllocRequest request{.bytes = bytes, .width = bytes, .height = 1, .array = {bytes, 0, 0, 1, 1, 0}};
        request.location.id = device();
        return request;
    }

    // Decides at random whether the next call fails.
    bool arm_failure(int result)
    {
        if (!fail_ || random_() % 100 >= fail_)
            return false;
        call_symbol(arm_, result);
        return true;
    }

    template<class F>
    int timed(Results& results, F call)
    {
        uint64_t start = now_ns();
        int result = call();
        results[result] += {1, now_ns() - start};
        return result;
    }

    bool allocate()
    {
        auto f = static_cast<unsigned>(random_() % functions_.size());
        auto s = static_cast<unsigned>(random_() % sizes_.size());
        bool expected_failure = arm_failure(standin::out_of_memory);
        AllocRequest& request = requests_[index(f, s)];
        request.bytes = sizes_[s];
        int result =
            timed(allocations_[index(f, s)], [&] { return functions_[f].row->call(functions_[f].call, request); });
        if (result && !expected_failure)
            fail(functions_[f].name + " returned " + std::to_string(result));
        if (!result)
            pool_.put({request.address, f, s, granted_[index(f, s)] = request.bytes});
        return !result;
    }

    bool free_one()
    {
        auto item = pool_.remove_random(random_());
        if (!item)
            return false;
        const Function& function = functions_[item->function];
        auto call = [&] { return call_free(*function.free_row, function.free_call, item->address, nullptr); };
        Results& results = frees_[index(item->function, item->size)];
        granted_[index(item->function, item->size)] = item->bytes;
        if (arm_failure(standin::invalid_value))
            timed(results, call);
        if (int result = timed(results, call))
            fail(function.free_name + " returned " + std::to_string(result));
        return true;
    }

    void add_to_truth(unsigned f, unsigned s, const char* kind, const std::string& name, const Results& results,
                      const char* nested) const
    {
        const AllocRow& row = *functions_[f].row;
        Call call = call_of(name, kind);
        call.synchronous = !is_async(name);
        for (auto [result, tally] : results) {
            // Pitched memory occupies more bytes than requested. A failed call is recorded with the requested bytes.
            bool not_granted = result && !std::string_view(kind).starts_with("f");
            call.data = data_of(row.holding, not_granted ? sizes_[s] : granted_[index(f, s)]);
            call.data->destination = row.kind;
            add_results(call, {{result, tally}}, pace_, nested);
        }
    }

    Pace pace_;
    std::vector<Function> functions_;
    Pool& pool_;
    uint64_t held_, fail_;
    std::mt19937_64 random_;
    std::vector<size_t> sizes_;
    void* arm_ = nullptr;
    std::vector<AllocRequest> requests_;
    std::vector<size_t> granted_; // bytes that the driver allocated, per function and size
    std::vector<Results> allocations_, frees_;
};

} // namespace

// churn PAIRS [keep] [held=K] [fail=PERCENT] [fn=FUNCTION,...]
void churn(const Step& step)
{
    ready_driver();
    Churn churn(step);
    churn.run(step.number(0), step.word(1, "") == "keep");
    churn.add_to_truth();
}

} // namespace workload
