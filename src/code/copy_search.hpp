// SPDX-License-Identifier: Apache-2.0
// The callers in a copy of a stack, by what files say of their code (.eh_frame): no frame pointers are needed. A
// helper's work (reader/helper.hpp), as it reads what processes have.
#pragma once

#include "code/copy_messages.hpp"
#include "code/process_image.hpp"
#include "reader/helper.hpp"

namespace gpusnoop {

class CopySearch {
public:
    // A helper's whole life.
    void serve(Helper::Task& task);

    CopyAnswer answer(const CopyQuestion& question);

private:
    Modules modules_;
};

} // namespace gpusnoop
