// SPDX-License-Identifier: Apache-2.0
// What the steps of one process share: the device and context of each thread, streams, an event, kernel handles, the
// last graph. Objects are made at first use, through the runtime where this form has one; a forked child inherits them.
#pragma once

#include "script.hpp"

#include <string>
#include <utility>

namespace workload {

// This thread's device. Threads start with their creator's.
int device();
void use_device(int);
void inherit_device(int);

// What owns objects: a device, and which of its contexts; null is the primary one.
using Place = std::pair<int, void*>;
Place place();
void enter_context(int device); // creates one on this thread
void leave_context();           // and destroys it
void forget(const Place&);      // its objects died

// The driver can be called from this thread: it is initialised, and a context of this thread's device is current.
void ready_driver();

// stream=N: 0 is the default stream, N the Nth created one of this place; also "legacy" and "per-thread"; "own" is a
// created one of this thread.
void* stream(const Step&, const std::string& fallback = "0");

// An event of this place, never recorded: to wait for it takes no time.
void* event();
void* named_event(const std::string& name); // one that is made when it is first named
void forget(void* destroyed);               // a stream or an event

// What a script's name stands for: names with a dot first are each thread's own.
std::string of_thread(const std::string& name);

// A kernel's handle in the driver by device name: a CUfunction, or a CUkernel of a library.
enum class HandleKind { function, kernel };
void* handle(const std::string& device_name, HandleKind);
void* look_up(const std::string& device_name); // asks again, as a program does that keeps no handle
void reload();                                 // unloads this place's module and library: their handles die

// The executable graph that was made last.
void* last_graph();
void set_last_graph(void* exec);

// SIGTERM or SIGINT came: loops end, and the truth is written.
bool stopping();
void stop_on_signals();

} // namespace workload
