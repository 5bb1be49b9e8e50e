// SPDX-License-Identifier: Apache-2.0
// containerd's folder of running tasks: STATE/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json, gone at exit.
#include "who/container_runtimes.hpp"

namespace gpusnoop {

bool read_containerd_task(const std::string& text, ContainerRecord& record)
{
    const bool read = read_oci_config(text, record);
    record.names.runtime = "containerd"; // whatever an annotation says
    return read;
}

} // namespace gpusnoop
