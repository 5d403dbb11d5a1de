// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The most memory this process has had, of which both dumbbell programs report.

#pragma once

#include <fstream>
#include <string>

/// KiB; 0 where /proc does not say. getrusage would count what the parent had before exec too.
inline long
PeakMemoryKib()
{
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;)
    {
        long kib = 0;
        if (key == "VmHWM:" && status >> kib)
        {
            return kib;
        }
        status.clear();
    }
    return 0;
}
