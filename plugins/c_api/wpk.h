/* Execute plans of wpk on an NVIDIA GPU, without Python.
 *
 * Calls on one engine may come from any thread and take effect one after the other. No function prints, and none
 * ends the process: each returns a status, and wpk_last_error() says in words what is wrong and how to fix it.
 * An engine belongs to the CUDA context that was current when it was opened, or to device 0's primary context
 * where none was; addresses and streams that it is given belong there too. */
#ifndef WPK_H
#define WPK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WPK_API __attribute__((visibility("default")))
#else
#define WPK_API
#endif

#ifdef __cplusplus
extern "C"
{
#endif

    typedef struct wpk_engine wpk_engine;
    struct CUstream_st; /* CUstream and cudaStream_t point to it */

    typedef enum wpk_status
    {
        WPK_OK = 0,
        WPK_INVALID_ARGUMENT = 1, /* the caller gave something that cannot be */
        WPK_DAMAGED = 2,          /* the file does not add up */
        WPK_UNSUPPORTED = 3,      /* right, but not executed here, e.g. a library that is not installed */
        WPK_NO_DRIVER = 4,        /* no CUDA driver or GPU, or a driver that is too old */
        WPK_DRIVER = 5,           /* the CUDA driver refused */
        WPK_OUT_OF_MEMORY = 6,    /* of the GPU or of this machine */
        WPK_IO = 7,               /* the file cannot be read */
        WPK_INTERNAL = 8          /* a bug in wpk */
    } wpk_status;

    typedef enum wpk_type
    {
        WPK_FP32 = 1,
        WPK_FP16 = 2,
        WPK_BF16 = 3,
        WPK_INT8 = 4,
        WPK_UINT8 = 5,
        WPK_INT32 = 6,
        WPK_INT64 = 7,
        WPK_BOOL = 8,
        WPK_INT16 = 9,
        WPK_UINT16 = 10,
        WPK_UINT32 = 11,
        WPK_UINT64 = 12,
        WPK_FP64 = 13,
        WPK_FP8_E4M3 = 14, /* ONNX's FLOAT8E4M3FN */
        WPK_FP8_E5M2 = 15
    } wpk_type;

    typedef enum wpk_direction
    {
        WPK_INPUT = 0,
        WPK_OUTPUT = 1
    } wpk_direction;

    /* What was wrong with this thread's last call that failed; "" if none did. Valid until its next call that fails. */
    WPK_API const char* wpk_last_error(void);

    /* Read a plan, load its kernels and weights. On failure *out is null. */
    WPK_API wpk_status wpk_open(const char* path, wpk_engine** out);

    /* Wait for the last run that was started outside of captures, and give everything back, also on failure. Null is
     * fine. Graphs of the caller's that hold runs of this engine must not be launched any more. */
    WPK_API wpk_status wpk_close(wpk_engine* engine);

    /* Inputs and outputs, by their numbers. Shapes and bytes are those at the current sizes of the free dimensions.
     * Names live as long as the engine. `shape` has room for wpk_rank() numbers. Tensors are dense, in C's order. */
    WPK_API wpk_status wpk_count(const wpk_engine* engine, wpk_direction direction, size_t* count);
    WPK_API wpk_status wpk_name(const wpk_engine* engine, wpk_direction direction, size_t number, const char** name);
    WPK_API wpk_status wpk_element_type(
        const wpk_engine* engine, wpk_direction direction, size_t number, wpk_type* type);
    WPK_API wpk_status wpk_rank(const wpk_engine* engine, wpk_direction direction, size_t number, size_t* rank);
    WPK_API wpk_status wpk_shape(const wpk_engine* engine, wpk_direction direction, size_t number, int64_t* shape);
    WPK_API wpk_status wpk_bytes(const wpk_engine* engine, wpk_direction direction, size_t number, uint64_t* bytes);

    /* Free dimensions, by their numbers: name, the size that the plan was tuned for, and the current one (at first the
     * tuned one). */
    WPK_API wpk_status wpk_dimension_count(const wpk_engine* engine, size_t* count);
    WPK_API wpk_status wpk_dimension_name(const wpk_engine* engine, size_t number, const char** name);
    WPK_API wpk_status wpk_dimension_tuned(const wpk_engine* engine, size_t number, int64_t* size);
    WPK_API wpk_status wpk_dimension_size(const wpk_engine* engine, size_t number, int64_t* size);

    /* Set the size, at least 1, of a free dimension. Takes effect with the next wpk_capture(). */
    WPK_API wpk_status wpk_set_dimension(wpk_engine* engine, const char* name, int64_t size);

    /* Say where an input or output lies on the GPU: wpk_bytes() bytes at a multiple of 16. It stays the caller's, and
     * takes effect with the next wpk_capture(). Where an input and an output have one name, wpk_bind_number() tells
     * them apart. */
    WPK_API wpk_status wpk_bind(wpk_engine* engine, const char* name, uint64_t address);
    WPK_API wpk_status wpk_bind_number(wpk_engine* engine, wpk_direction direction, size_t number, uint64_t address);

    /* Make ready what wpk_run() starts, at the current sizes and addresses; all ports are bound. Waits for the last
     * run, and may allocate, so not while a stream of this thread is captured. A graph of the caller's that holds an
     * earlier run of this engine must not be launched any more. */
    WPK_API wpk_status wpk_capture(wpk_engine* engine);

    /* Start a run on a stream, without waiting. Runs of one engine follow each other, whatever their streams are.
     * If the stream is being captured, the run's kernels become nodes of the caller's graph; launches of that graph
     * are the caller's to order with other runs of the engine, and needs it to be open. */
    WPK_API wpk_status wpk_run(wpk_engine* engine, struct CUstream_st* stream);

#ifdef __cplusplus
}
#endif

#endif
