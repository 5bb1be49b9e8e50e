// SPDX-License-Identifier: Apache-2.0
// A BPF object of any skeleton type. Code that serves several objects finds maps and global variables by name.
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

    // S: the type that it was opened as.
    template<class S>
    S& as() const
    {
        return *static_cast<S*>(skeleton_.get());
    }

    bpf_object* get() const { return object_; }
    int load() const { return load_(); } // negative errno

    bpf_map* map(const std::string& name) const; // null where the object has none
    int fd(const std::string& name) const;       // of a map, once it is loaded; negative where the object has none
    void resize(const std::string& name, uint32_t entries) const; // before it is loaded; no effect where there is none

    // A global variable; null where the object has none. Read-only data may be written before the object is loaded.
    // Throws std::logic_error if the variable has another size.
    template<class T>
    T* find(const std::string& name) const
    {
        return static_cast<T*>(find(name, sizeof(T)));
    }
    // No effect where the object has no such variable.
    template<class T>
    void set(const std::string& name, T value) const
    {
        if (T* const variable = find<T>(name))
            *variable = value;
    }
    bool has(const std::string& name) const { return !variable(name).empty(); }
    std::span<std::byte> variable(const std::string& name) const; // its bytes; empty where the object has none

private:
    void* find(const std::string& name, size_t size) const;

    std::shared_ptr<void> skeleton_;
    bpf_object* object_ = nullptr;
    std::function<int()> load_;
};

} // namespace gpusnoop
