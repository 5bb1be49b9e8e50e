// SPDX-License-Identifier: Apache-2.0
// cudadiff on an untrusted recording.
#include "base/error.hpp"
#include "base/text.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/cudadiff/comparison.hpp"
#include "tools/cudadiff/words.hpp"

using namespace gpusnoop;
using namespace gpusnoop::cudadiff;

void fuzz(std::string_view input)
{
    const Folder folder;
    folder.write("recording", input);
    const std::string files[] = {folder.path() + "/recording"};
    try {
        Side side(Group::process);
        side.read(files);
        const Comparison itself = compare(side, side, {});
        for (const Compared& row : itself.rows)
            expect(!row.change.significant && row.change.difference == 0, "a recording does not differ from itself");
        expect(summary(itself, {}).size() < 1000, "the summary is bounded");
    } catch (const Error& error) {
        expect(printable(error.what()) == error.what(), "the error message is printable");
    }
}
