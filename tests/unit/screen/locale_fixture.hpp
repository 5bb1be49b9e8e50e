// SPDX-License-Identifier: Apache-2.0
// Object that sets LC_CTYPE, which determines character widths, and restores it in its destructor.
#pragma once

#include <clocale>
#include <string>

namespace gpusnoop {

class Locale {
public:
    explicit Locale(const char* name) : before_(std::setlocale(LC_CTYPE, nullptr)) { std::setlocale(LC_CTYPE, name); }
    Locale(const Locale&) = delete;
    Locale& operator=(const Locale&) = delete;
    ~Locale() { std::setlocale(LC_CTYPE, before_.c_str()); }

private:
    std::string before_;
};

} // namespace gpusnoop
