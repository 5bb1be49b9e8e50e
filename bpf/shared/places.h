/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
#ifndef GPUSNOOP_PLACES_H
#define GPUSNOOP_PLACES_H

#define PLACES_MAX 16384 /* threads that a table has, and that live */

#endif
