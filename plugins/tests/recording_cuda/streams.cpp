// The double's streams, events, captures and graphs.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugins/tests/recording_cuda/graphs.hpp"
#include "plugins/tests/recording_cuda/record.hpp"

using namespace recording;

extern "C"
{

    CUresult cuStreamCreate(CUstream* stream, unsigned)
    {
        WPK_CALL("cuStreamCreate");
        *stream = record.keep(new CUstream_st);
        return success;
    }

    CUresult cuStreamDestroy_v2(CUstream stream)
    {
        return record.give_back("cuStreamDestroy", stream);
    }

    CUresult cuStreamSynchronize(CUstream)
    {
        WPK_CALL("cuStreamSynchronize");
        return success;
    }

    CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned)
    {
        WPK_CALL("cuStreamWaitEvent");
        return success;
    }

    CUresult cuEventCreate(CUevent* event, unsigned)
    {
        WPK_CALL("cuEventCreate");
        *event = record.keep(new CUevent_st);
        return success;
    }

    CUresult cuEventDestroy_v2(CUevent event)
    {
        return record.give_back("cuEventDestroy", event);
    }

    CUresult cuEventRecord(CUevent, CUstream)
    {
        WPK_CALL("cuEventRecord");
        return success;
    }

    CUresult cuEventSynchronize(CUevent)
    {
        WPK_CALL("cuEventSynchronize");
        return success;
    }

    CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent)
    {
        WPK_CALL("cuEventElapsedTime");
        *milliseconds = 0.125F;
        return success;
    }

    CUresult cuStreamBeginCapture_v2(CUstream stream, int)
    {
        WPK_CALL("cuStreamBeginCapture");
        of(stream).graph = record.keep(new CUgraph_st);
        of(stream).front.clear();
        return success;
    }

    CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph)
    {
        *graph = std::exchange(of(stream).graph, nullptr);
        WPK_CALL("cuStreamEndCapture");
        tell(**graph);
        return success;
    }

    CUresult cuStreamIsCapturing(CUstream stream, int* status)
    {
        WPK_CALL("cuStreamIsCapturing");
        *status = of(stream).graph != nullptr;
        return success;
    }

    CUresult cuStreamGetCaptureInfo_v2(
        CUstream stream, int* status, std::uint64_t*, CUgraph* graph, const CUgraphNode** nodes, std::size_t* count)
    {
        WPK_CALL("cuStreamGetCaptureInfo");
        CUstream_st& on = of(stream);
        *status = on.graph != nullptr;
        *graph = on.graph;
        *nodes = on.front.data();
        *count = on.front.size();
        return success;
    }

    CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned)
    {
        WPK_CALL("cuStreamUpdateCaptureDependencies " + std::to_string(count));
        of(stream).front.assign(nodes, nodes + count);
        return success;
    }

    CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count)
    {
        WPK_CALL("cuGraphAddEmptyNode");
        graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{
            "nothing", [] { record.line("run nothing"); }, std::vector<CUgraphNode>(before, before + count)}));
        *node = graph->nodes.back().get();
        return success;
    }

    CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long)
    {
        WPK_CALL("cuGraphInstantiate");
        *executable = record.keep(new CUgraphExec_st{*graph});
        return success;
    }

    CUresult cuGraphDestroy(CUgraph graph)
    {
        return record.give_back("cuGraphDestroy", graph);
    }

    CUresult cuGraphExecDestroy(CUgraphExec executable)
    {
        return record.give_back("cuGraphExecDestroy", executable);
    }

    CUresult cuGraphLaunch(CUgraphExec executable, CUstream)
    {
        WPK_CALL("cuGraphLaunch");
        execute(executable->graph);
        return success;
    }

} // extern "C"
