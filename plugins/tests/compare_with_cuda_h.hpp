// What plugins/core/cuda_types.hpp declares, beside cuda.h. tests/plugins/test_cuda_types.py compiles this, followed by
// a WPK_SAME for each function that plugins/core/cuda_driver.cpp looks up.
#pragma once

#define CUresult WpkResult // the one name that means something else there: an enumeration
#include "plugins/core/cuda_functions.hpp"
#undef CUresult

#define __CUDA_API_VERSION_INTERNAL // declares all versions by their own names
#include <type_traits>

#include <cuda.h>

namespace wpk
{

// Whether a value may be passed as one type and taken as the other.
template <typename Ours, typename Theirs>
constexpr bool is_alike()
{
    if constexpr (std::is_same_v<Ours, Theirs>)
    {
        return true;
    }
    else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>)
    {
        return is_alike<std::remove_cv_t<std::remove_pointer_t<Ours>>,
            std::remove_cv_t<std::remove_pointer_t<Theirs>>>();
    }
    else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>)
    {
        return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) >= alignof(Theirs);
    }
    else if constexpr ((std::is_integral_v<Ours> || std::is_enum_v<Ours>)
                       && (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>))
    {
        return sizeof(Ours) == sizeof(Theirs);
    }
    else
    {
        return false;
    }
}

template <typename Ours, typename Theirs>
struct IsSameCall : std::false_type
{
};

template <typename Our, typename... Ours, typename Their, typename... Theirs>
struct IsSameCall<Our (*)(Ours...), Their (*)(Theirs...)>
{
    static constexpr bool compare()
    {
        if constexpr (sizeof...(Ours) == sizeof...(Theirs))
        {
            return is_alike<Our, Their>() && (is_alike<Ours, Theirs>() && ...);
        }
        return false;
    }

    static constexpr bool value = compare();
};

#define WPK_SAME(ours, theirs) \
    static_assert(wpk::IsSameCall<decltype(wpk::Driver::ours), decltype(&::theirs)>::value, #ours " differs")

#define WPK_SAME_PLACE(ours, field, theirs, other) \
    static_assert(offsetof(ours, field) == offsetof(theirs, other), #field " lies elsewhere")

WPK_SAME_PLACE(LaunchConfiguration, grid, CUlaunchConfig, gridDimX);
WPK_SAME_PLACE(LaunchConfiguration, block, CUlaunchConfig, blockDimX);
WPK_SAME_PLACE(LaunchConfiguration, shared_bytes, CUlaunchConfig, sharedMemBytes);
WPK_SAME_PLACE(LaunchConfiguration, stream, CUlaunchConfig, hStream);
WPK_SAME_PLACE(LaunchConfiguration, attributes, CUlaunchConfig, attrs);
WPK_SAME_PLACE(LaunchConfiguration, attribute_count, CUlaunchConfig, numAttrs);
WPK_SAME_PLACE(LaunchAttribute, id, CUlaunchAttribute, id);
WPK_SAME_PLACE(LaunchAttribute, value, CUlaunchAttribute, value);
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) && sizeof(TensorMapDescriptor) == sizeof(CUtensorMap)
                  && alignof(TensorMapDescriptor) >= alignof(CUtensorMap),
    "sizes differ");
static_assert(attribute_cluster == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                  && attribute_cooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                  && attribute_programmatic_serialization == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
    "numbers differ");

} // namespace wpk
