// A recipe as a graph of cuDNN's frontend, as wpk/libraries/cudnn_graph.py builds it.
#pragma once

#include <memory>

#include <cudnn_frontend.h>

#include "plugins/libraries/cudnn_recipe.hpp"

namespace wpk
{

namespace frontend = cudnn_frontend;

// Inputs are numbered from 1 in the graph, and the output follows them. Throws Error(damaged) for what the frontend has
// no name for; whether cuDNN computes it shows when the graph is validated.
std::shared_ptr<frontend::graph::Graph> build_graph(const CudnnRecipe& recipe);

// Throws Error(damaged).
frontend::KnobType_t knob_of(const std::string& name);

} // namespace wpk
