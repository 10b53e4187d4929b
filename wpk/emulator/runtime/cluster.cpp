// Clusters (sm_90): their barrier, and the shared memory of their other blocks.
#include "state.h"

namespace wpk::emulator
{

void runClusterArrive(Warp& warp, uint32 mask)
{
    if ((warp.clusterUnwaited & mask) != 0)
        fail("arriveCluster again, without waitCluster in between");
    warp.clusterArrived |= mask;
    warp.clusterUnwaited |= mask;
    completeClusterPhase();
}

void runClusterWait(Warp& warp, uint32 mask)
{
    if ((warp.clusterUnwaited & mask) != mask)
        fail("waitCluster without arriveCluster");
    warp.clusterUnwaited &= ~mask;
}

void completeClusterPhase()
{
    Worker& self = *worker;
    bool any = false;
    for (const Warp& warp : self.warps)
    {
        if ((warp.live & ~warp.clusterArrived) != 0)
            return;
        any |= (warp.live & warp.clusterArrived) != 0;
    }
    if (!any)
        return;
    for (Warp& warp : self.warps)
        warp.clusterArrived = 0;
    for (RunningBlock& block : self.blocks)
        orderStores(block);
    self.clusterPhases++;
    wakeSleepers();
}

bool findShared(unsigned long address, size_t bytes, uint32* offset)
{
    const Worker& self = *worker;
    const RunningBlock& block = currentBlock();
    const unsigned long dynamic = reinterpret_cast<unsigned long>(block.shared);
    const unsigned long fixed = reinterpret_cast<unsigned long>(self.staticShared);
    if (address >= dynamic && address + bytes <= dynamic + block.sharedBytes)
    {
        *offset = static_cast<uint32>(address - dynamic);
        return true;
    }
    if (fixed != 0 && address >= fixed && address + bytes <= fixed + self.launch->staticBytes)
    {
        *offset = static_cast<uint32>(address - fixed);
        return true;
    }
    return false;
}

RunningBlock* blockAt(unsigned long address, size_t bytes, uint32* offset)
{
    for (RunningBlock& block : worker->blocks)
    {
        const unsigned long start = reinterpret_cast<unsigned long>(block.shared);
        if (address < start || address + bytes > start + block.sharedBytes)
            continue;
        *offset = static_cast<uint32>(address - start);
        return &block;
    }
    return nullptr;
}

RunningBlock& liveBlockAt(unsigned long address, size_t bytes, const char* what)
{
    uint32 offset;
    RunningBlock* const block = blockAt(address, bytes, &offset);
    if (block == nullptr)
        fail("%s: %zu bytes at %p are not in the dynamic shared memory of a block of the cluster", what, bytes,
            reinterpret_cast<void*>(address));
    if (block != &currentBlock() && worker->clusterPhases == 0)
        fail("%s: block %u of the cluster may not have begun: its barrier was not waited for", what, block->rank);
    if (block->live == 0)
        fail("%s: block %u of the cluster has ended, and its shared memory with it", what, block->rank);
    return *block;
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_cluster_arrive()
{
    wpk_emulator_collective(~0u, Collective::clusterArrive, nullptr);
}

WPK_API void wpk_emulator_cluster_wait()
{
    const Fiber& fiber = *currentFiber();
    wpk_emulator_collective(~0u, Collective::clusterWait, nullptr);
    while ((fiber.warp->clusterArrived >> fiber.lane & 1) != 0)
        sleepFor(Collective::clusterWait, nullptr, 0);
    yieldSometimes();
}

WPK_API unsigned long wpk_emulator_cluster_address(unsigned long address, int rank)
{
    const Worker& self = *worker;
    uint32_t offset;
    if (rank < 0 || static_cast<size_t>(rank) >= self.blocks.size())
        fail("clusterAddress: block %d of a cluster of %zu", rank, self.blocks.size());
    if (!findShared(address, 1, &offset))
        fail("clusterAddress: %p is not in the dynamic shared memory of this block", reinterpret_cast<void*>(address));
    return reinterpret_cast<unsigned long>(self.blocks[static_cast<size_t>(rank)].shared) + offset;
}

WPK_API void wpk_emulator_cluster_access(unsigned long address, uint32_t bytes)
{
    if (address % bytes != 0)
        fail("an access of %u bytes to the cluster's shared memory is not aligned to them", bytes);
    liveBlockAt(address, bytes, "an access to the cluster's shared memory");
    yieldSometimes();
}
