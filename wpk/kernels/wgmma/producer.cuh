// The producer (sm_90a): the first lane of the block's last warp asks TMA for the tiles of each step.
//
// Where tiles come from is a template's business: its Loader(tensor maps, output window of a tile) has
//   kSteps                                                       the steps of the reduction
//   prefetch()                                                   brings the tensor maps near
//   copyA(target, barrier, step), copyB(target, barrier, step)   ask for the boxes of a step
//   kConstantB                                                   no kernel writes B
//
// With programmatic dependent launch B of the first steps is asked for before the kernels in front have ended, if no
// kernel writes it; A never is.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

// The prologue: asks for the first steps, as many as there are stages, which are empty.
template <class Shape, class Loader>
WPK_DEVICE void producePrologue(const WgmmaPipeline<Shape>& pipeline, const Loader& loader, int first, int count)
{
    const int filled = minOf(Shape::stages, count);
    loader.prefetch();
    if (Shape::early && !Loader::kConstantB)
        waitForPrevious();
    for (int stage = 0; stage < filled; ++stage)
    {
        arriveExpectBytes(pipeline.full(stage), Shape::stageBytes); // @bytes_announced
        loader.copyB(pipeline.tileB(stage), pipeline.full(stage), first + stage);
    }
    if (Shape::early && Loader::kConstantB)
        waitForPrevious();
    for (int stage = 0; stage < filled; ++stage)
        loader.copyA(pipeline.tileA(stage), pipeline.full(stage), first + stage);
}

// Behind a prologue the producer waits for the stages of its first round, else it is a round ahead.
template <class Shape>
WPK_DEVICE int phaseOfEmpty(const PipelineState<Shape::stages>& state)
{
    return Shape::persistent ? state.phase ^ 1 : state.phase;
}

// With multicast waits until the last `count` stages are released, from `state` on: then no other block arrives here
// any more, and what this one has asked for has come.
template <class Shape>
WPK_DEVICE void drainStages(const WgmmaPipeline<Shape>& pipeline, PipelineState<Shape::stages> state, int count)
{
    if constexpr (Shape::multicast == 1)
        return;
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        waitBarrier(pipeline.empty(state.stage), phaseOfEmpty<Shape>(state));
        state.advance();
    }
}

// Asks for steps from `begin` to `end`, each as soon as its stage is empty. `waits`: before the first A the kernels in
// front have to end.
template <class Shape, class Loader>
WPK_DEVICE void produceSteps(const WgmmaPipeline<Shape>& pipeline, PipelineState<Shape::stages>& state,
    const Loader& loader, int first, int begin, int end, bool& waits)
{
    WPK_KEEP_LOOP
    for (int step = begin; step < end; ++step)
    {
        pipeline.acquire(state.stage, phaseOfEmpty<Shape>(state), Shape::stageBytes);
        loader.copyB(pipeline.tileB(state.stage), pipeline.full(state.stage), first + step);
        if (waits) // @first_a_awaits
            waitForPrevious();
        waits = false;
        loader.copyA(pipeline.tileA(state.stage), pipeline.full(state.stage), first + step);
        state.advance();
    }
}

// Asks for the steps behind the prologue's, and ends.
template <class Shape, class Loader>
WPK_DEVICE void produceOneTile(const WgmmaPipeline<Shape>& pipeline, const Loader& loader, int first, int count)
{
    PipelineState<Shape::stages> state;
    bool waits = false;
    produceSteps(pipeline, state, loader, first, Shape::stages, count, waits);
    if (Shape::early)
        releaseNext();
    drainStages<Shape>(pipeline, state, minOf(Shape::stages, count)); // @stages_drained
}

// Asks for all steps of all tiles of a persistent block.
template <class Shape, class Loader, class Scheduler, class Maps, class Rows>
WPK_DEVICE void producePersistent(
    const WgmmaPipeline<Shape>& pipeline, Scheduler tiles, const Maps& maps, const OutputWindow<Rows>& output)
{
    if (Shape::early && !Loader::kConstantB)
        waitForPrevious();
    bool waits = Shape::early && Loader::kConstantB;
    PipelineState<Shape::stages> state;
    WPK_KEEP_LOOP
    for (; !tiles.isDone(); tiles.advance())
    {
        const Loader loader(maps, tiles.window(output)); // @tile_begun
        produceSteps(pipeline, state, loader, 0, 0, Loader::kSteps, waits);
    }
    if (Shape::early)
        releaseNext();
    drainStages<Shape>(pipeline, state, Shape::stages); // @persistent_stages_drained
}

} // namespace wpk
