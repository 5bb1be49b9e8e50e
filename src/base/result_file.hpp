// SPDX-License-Identifier: Apache-2.0
// A file that results go to, and that is written anew by each run.
#pragma once

#include "base/fd.hpp"
#include "base/output_path.hpp"

#include <string>
#include <string_view>

namespace gpusnoop {

class ResultFile {
public:
    // begin: what such a file begins with. what: "flame graph". What is there stays until there is something to write,
    // and for good where it is something else. Throws Error.
    ResultFile(std::string path, std::string_view begin, std::string_view what);

    // Behind what has been written by this run. Throws Error.
    void write(std::string_view bytes);

private:
    OutputPath path_;
    std::string what_;
    Fd file_;
    bool begun_ = false;
};

} // namespace gpusnoop
