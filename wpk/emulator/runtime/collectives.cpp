// The operations for which the lanes of a warp meet: their names, and what executes them.
#include "state.h"

namespace wpk::emulator
{

const char* nameOf(Collective kind)
{
    static const char* const kNames[] = {"__syncwarp", "shuffle", "ballot", "warp reduction", "loadMatrix",
        "storeMatrices", "mmaTile", "wgmma", "fenceWgmma", "commitWgmma", "waitWgmma", "arriveCluster", "waitCluster",
        "syncThreads", "waitBarrier", "waitGrid"};
    return kNames[static_cast<uint32>(kind)];
}

void runCollective(Collective kind, Warp& warp, uint32 mask)
{
    switch (kind)
    {
    case Collective::syncWarp:
        return;
    case Collective::shuffle:
        return runShuffle(warp, mask);
    case Collective::vote:
        return runVote(warp, mask);
    case Collective::reduce:
        return runReduce(warp, mask);
    case Collective::loadMatrix:
        return runLoadMatrix(warp, mask);
    case Collective::storeMatrices:
        return runStoreMatrices(warp, mask);
    case Collective::mmaTile:
        return runMmaTile(warp, mask);
    case Collective::wgmma:
        return runWgmma(warp, mask);
    case Collective::wgmmaFence:
        return runWgmmaFence(warp, mask);
    case Collective::wgmmaCommit:
        return runWgmmaCommit(warp, mask);
    case Collective::wgmmaWait:
        return runWgmmaWait(warp, mask);
    case Collective::clusterArrive:
        return runClusterArrive(warp, mask);
    case Collective::clusterWait:
        return runClusterWait(warp, mask);
    case Collective::namedBarrier:
    case Collective::mbarrier:
        return;
    }
}

} // namespace wpk::emulator
