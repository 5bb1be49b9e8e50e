// SPDX-License-Identifier: Apache-2.0
// A library of one function, which calls that of another one; every other has a C++ name.
extern CALLED_IN int CALLED(int n);

extern NAMED_IN [[gnu::noinline]] int NAME(int n)
{
    volatile char room[ROOM];
    room[n % ROOM] = static_cast<char>(n);
    return CALLED(n + 1) + room[n % ROOM]; // no tail call
}
