// Bank conflicts of shared-memory accesses.
//
// Shared memory has 32 banks of 4 bytes. A warp's access of up to 4 bytes a lane goes out in one phase of
// 32 lanes, of 8 bytes in two of 16 lanes, of 16 bytes in four of 8; a phase takes as many passes as
// the largest number of different words that lie in one bank.
//
// Lanes run one after another here, so each logs its accesses; at the warp's next rendezvous the n-th
// access of every lane from the same place in the code is taken as one access of the warp.
#include <algorithm>

#include "state.h"

namespace wpk::emulator
{

namespace
{

constexpr uint32 kBanks = 32, kBankBytes = 4;
constexpr size_t kLogLimit = 1 << 14; // accesses of one lane between two rendezvous

struct Counted
{
    const void* site;
    uint32 occurrence, lane, offset;
    uint16 bytes, kind;
};

bool sameAccess(const Counted& a, const Counted& b)
{
    return a.site == b.site && a.occurrence == b.occurrence && a.kind == b.kind && a.bytes == b.bytes;
}

// Lanes of one warp access, ordered by lane: split into phases.
void countWarpAccess(const Counted* begin, const Counted* end)
{
    const uint32 bytes = begin->bytes, lanesPerPhase = bytes <= 4 ? 32 : 32 * kBankBytes / bytes;
    while (begin != end)
    {
        const uint32 phase = begin->lane / lanesPerPhase;
        uint32 offsets[32];
        int lanes = 0;
        const AccessKind kind = static_cast<AccessKind>(begin->kind);
        for (; begin != end && begin->lane / lanesPerPhase == phase; ++begin)
            offsets[lanes++] = begin->offset;
        countPhase(kind, offsets, lanes, bytes);
    }
}

} // namespace

void countPhase(AccessKind kind, const uint32* offsets, int lanes, uint32 bytes)
{
    uint32 words[kBanks * 4];
    int count = 0;
    for (int lane = 0; lane < lanes; ++lane)
    {
        const uint32 first = offsets[lane] / kBankBytes, last = (offsets[lane] + bytes - 1) / kBankBytes;
        for (uint32 word = first; word <= last; ++word)
            words[count++] = word;
    }
    std::sort(words, words + count);
    count = static_cast<int>(std::unique(words, words + count) - words);
    uint32 inBank[kBanks] = {}, most = 0;
    for (int i = 0; i < count; ++i)
        most = std::max(most, ++inBank[words[i] % kBanks]);
    worker->statistics.phases[kind]++;
    worker->statistics.conflicts[kind] += most - 1;
}

void logAccess(const void* site, unsigned long address, uint32 bytes, AccessKind kind)
{
    uint32 offset;
    if (!findShared(address, bytes, &offset))
        return;
    std::vector<Access>& log = currentFiber()->checks->accesses;
    if (log.size() == kLogLimit)
    {
        worker->statistics.uncounted++;
        return;
    }
    log.push_back({site, offset, static_cast<uint16>(bytes), static_cast<uint16>(kind)});
}

void countAccesses(Warp& warp)
{
    static thread_local std::vector<Counted> all;
    static thread_local std::vector<std::pair<const void*, uint32>> seen;
    all.clear();
    for (uint32 lane = 0; lane < 32 && warp.fibers + lane < worker->fibers.data() + worker->fibers.size(); ++lane)
    {
        seen.clear();
        for (const Access& access : warp.fibers[lane].checks->accesses)
        {
            auto found =
                std::find_if(seen.begin(), seen.end(), [&](auto& entry) { return entry.first == access.site; });
            if (found == seen.end())
                found = seen.insert(seen.end(), {access.site, 0});
            all.push_back({access.site, found->second++, lane, access.offset, access.bytes, access.kind});
        }
        warp.fibers[lane].checks->accesses.clear();
    }
    std::stable_sort(all.begin(), all.end(), [](const Counted& a, const Counted& b)
        { return a.site != b.site ? a.site < b.site : a.occurrence < b.occurrence; });
    for (size_t begin = 0; begin < all.size();)
    {
        size_t end = begin + 1;
        while (end < all.size() && sameAccess(all[begin], all[end]))
            ++end;
        countWarpAccess(&all[begin], all.data() + end);
        begin = end;
    }
}

} // namespace wpk::emulator
