// SPDX-License-Identifier: Apache-2.0
// State shared by the steps of a process: devices and contexts of threads, streams, events, kernel handles, the last
// graph. Objects are created on first use, through the runtime if this form has one; a forked child inherits them.
#pragma once

#include "script.hpp"

#include <string>
#include <utility>

namespace workload {

// This thread's device. Threads inherit their creator's.
int device();
void use_device(int);
void inherit_device(int);

// Owner of objects: a device and one of its contexts. A null context means the primary context. place() is the owner of
// objects that this thread creates.
using Place = std::pair<int, void*>;
Place place();
void enter_context(int device); // creates a context on this thread
void leave_context();           // destroys the context that this thread created last
void forget(const Place&);      // forgets the objects that are destroyed with this owner's context

// Prepares this thread for driver calls: initializes the driver, and makes a context of the thread's device current.
void ready_driver();

// Returns the stream of the option stream=. 0 is the default stream, N the Nth stream created in the current context,
// "own" a stream created for this thread. "legacy" and "per-thread" are also accepted.
void* stream(const Step&, const std::string& fallback = "0");

// An event of the current context that is never recorded, so that waits for it end at once.
void* event();
void* named_event(const std::string& name); // created on first use
void forget(void* destroyed);               // forgets a destroyed stream or event

// Names with a leading dot are per thread: adds the thread id to them.
std::string per_thread_name(const std::string& name);

// A kernel's handle in the driver by device name: a CUfunction, or a CUkernel of a library.
enum class HandleKind { function, kernel };
void* handle(const std::string& device_name, HandleKind);
void* look_up(const std::string& device_name); // looks up the handle again, like programs that do not keep it
void reload(); // unloads the current context's modules and libraries; their handles become invalid

// The executable graph that was created last.
void* last_graph();
void set_last_graph(void* exec);

} // namespace workload
