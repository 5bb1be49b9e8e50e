// SPDX-License-Identifier: Apache-2.0
// A library with one function, which calls the function of the next library. Levels alternate between C and C++ names.
extern CALLED_IN int CALLED(int n);

extern NAMED_IN [[gnu::noinline]] int NAME(int n)
{
    volatile char buffer[ROOM];
    buffer[n % ROOM] = static_cast<char>(n);
    return CALLED(n + 1) + buffer[n % ROOM]; // prevents a tail call
}
