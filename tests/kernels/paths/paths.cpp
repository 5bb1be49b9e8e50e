// SPDX-License-Identifier: Apache-2.0
// Attaches one program per kind (kprobe, fentry, ...) to the driver's ioctl function and error report, as far as these
// exist. At the end of stdin, prints the counts.
//
//     paths IOCTL_FUNCTION
#include "paths.h"
#include "paths.skel.h"

#include <bpf/libbpf.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <unistd.h>

namespace {

const char* const names[PATHS] = {"kprobe", "kretprobe", "fentry", "fexit", "xid_kprobe", "xid_tracepoint"};

int quiet(libbpf_print_level, const char*, va_list)
{
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
        return 2;
    const char* function = argv[1];
    libbpf_set_print(quiet);
    bool types = access("/sys/kernel/btf/nvidia", F_OK) == 0;
    paths_bpf* skeleton = paths_bpf__open();
    if (!skeleton)
        return 1;
    for (bpf_program* program : {skeleton->progs.ioctl_fentry, skeleton->progs.ioctl_fexit}) {
        bpf_program__set_autoload(program, types);
        if (types)
            bpf_program__set_attach_target(program, 0, function);
    }
    if (paths_bpf__load(skeleton)) {
        fprintf(stderr, "paths: cannot load the BPF programs: %s\n", strerror(errno));
        return 1;
    }
    bpf_link* links[PATHS] = {};
    links[PATH_KPROBE] = bpf_program__attach_kprobe(skeleton->progs.ioctl_entry, false, function);
    links[PATH_KRETPROBE] = bpf_program__attach_kprobe(skeleton->progs.ioctl_return, true, function);
    links[PATH_XID_KPROBE] = bpf_program__attach_kprobe(skeleton->progs.xid_entry, false, "nv_report_error");
    links[PATH_XID_TRACEPOINT] = bpf_program__attach_tracepoint(skeleton->progs.xid_event, "nvidia", "nvidia_dev_xid");
    if (types) {
        links[PATH_FENTRY] = bpf_program__attach(skeleton->progs.ioctl_fentry);
        links[PATH_FEXIT] = bpf_program__attach(skeleton->progs.ioctl_fexit);
    }
    fprintf(stderr, "attached\n");
    while (getchar() != EOF)
        ;
    for (int i = 0; i < PATHS; i++) {
        const path_count& c = skeleton->bss->counts[i];
        if (links[i])
            printf("{\"path\":\"%s\",\"count\":%llu,\"sum\":%llu,\"failed\":%llu}\n", names[i], c.count, c.sum,
                   c.failed);
        bpf_link__destroy(links[i]);
    }
    paths_bpf__destroy(skeleton);
}
