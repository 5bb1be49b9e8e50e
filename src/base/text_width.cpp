// SPDX-License-Identifier: Apache-2.0
#include "base/text_width.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <locale.h>

namespace gpusnoop {
namespace {

// Daemons and sudo often run in the locale "C", where wcwidth() knows no character beyond ASCII.
class Utf8Locale {
public:
    Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}
    ~Utf8Locale()
    {
        if (locale_)
            freelocale(locale_);
    }
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;

    int width(char32_t code) const
    {
        if (!locale_)
            return ::wcwidth(static_cast<wchar_t>(code));
        const locale_t before = uselocale(locale_);
        const int width = ::wcwidth(static_cast<wchar_t>(code));
        uselocale(before);
        return width;
    }

private:
    locale_t locale_; // null where the system has none
};

} // namespace

bool is_invisible(char32_t code)
{
    return code == 0xad || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x206f) ||
           (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff || code >= 0xe0000;
}

int columns_of(char32_t code)
{
    if (code >= 0x20 && code < 0x7f)
        return 1;
    if (is_invisible(code))
        return 0;
    if (steers_terminal(code))
        return -1;
    static const Utf8Locale locale;
    return std::min(locale.width(code), 2);
}

} // namespace gpusnoop
