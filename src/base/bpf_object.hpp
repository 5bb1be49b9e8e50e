// SPDX-License-Identifier: Apache-2.0
// BPF object of any skeleton type, for code that several tools share. Finds maps and global variables by name.
#pragma once

#include "base/bpf_map.hpp"

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

struct bpf_map;
struct bpf_object;

namespace gpusnoop {

class BpfObject {
public:
    // Throws Error.
    template<class S>
    static BpfObject open()
    {
        BpfObject opened;
        std::shared_ptr<S> skeleton = open_skeleton<S>();
        opened.object_ = skeleton->obj;
        opened.load_ = [s = skeleton.get()] { return S::load(s); };
        opened.skeleton_ = std::move(skeleton);
        return opened;
    }

    // S must be the type passed to open().
    template<class S>
    S& as() const
    {
        return *static_cast<S*>(skeleton_.get());
    }

    bpf_object* get() const { return object_; }
    int load() const { return load_(); } // 0 or a negative errno

    bpf_map* map(const std::string& name) const; // null if there is none
    int fd(const std::string& name) const;       // map descriptor after load(); negative if there is none
    // Must be called before load(). Does nothing if there is no such map.
    void resize(const std::string& name, uint32_t entries) const;

    // Returns a global variable; null if there is none. A const variable may be written only before load(). Throws
    // std::logic_error if the variable does not have the size of T.
    template<class T>
    T* find(const std::string& name) const
    {
        return static_cast<T*>(find(name, sizeof(T)));
    }
    // Does nothing if there is no such variable.
    template<class T>
    void set(const std::string& name, T value) const
    {
        if (T* const variable = find<T>(name))
            *variable = value;
    }
    bool has(const std::string& name) const { return !variable(name).empty(); }
    // The bytes of a global variable; empty if there is none.
    std::span<std::byte> variable(const std::string& name) const;

private:
    void* find(const std::string& name, size_t size) const;

    std::shared_ptr<void> skeleton_;
    bpf_object* object_ = nullptr;
    std::function<int()> load_;
};

} // namespace gpusnoop
