/* run_plan PLAN [FILE...]: execute a plan once, and print how its outputs begin.
 *
 * A file holds the bytes of an input, dense, in C's order; the first one is the first input's. Inputs without a file
 * are zero. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <wpk.h>

enum
{
    most_ports = 64,
    printed_numbers = 4
};

static void require(int is_right, const char* what, const char* why)
{
    if (!is_right)
    {
        fprintf(stderr, "run_plan: cannot %s: %s\n", what, why);
        exit(1);
    }
}

/* A call of wpk's, and one of CUDA's. */
static void wpk(wpk_status status, const char* what)
{
    require(status == WPK_OK, what, wpk_last_error());
}

static void cuda(CUresult status, const char* what)
{
    const char* why = "unknown";
    if (status != CUDA_SUCCESS)
    {
        cuGetErrorString(status, &why);
    }
    require(status == CUDA_SUCCESS, what, why);
}

typedef struct port
{
    const char* name;
    wpk_type type;
    uint64_t bytes;
    CUdeviceptr memory;
} port;

/* Allocate what the engine reads or writes, and say where it lies; how many there are. */
static size_t bind(wpk_engine* engine, wpk_direction direction, port* ports)
{
    size_t count = 0;
    wpk(wpk_count(engine, direction, &count), "count inputs and outputs");
    require(count <= most_ports, "bind the plan", "it has too many inputs or outputs for this example");
    for (size_t i = 0; i < count; ++i)
    {
        wpk(wpk_name(engine, direction, i, &ports[i].name), "name a port");
        wpk(wpk_element_type(engine, direction, i, &ports[i].type), "tell a port's type");
        wpk(wpk_bytes(engine, direction, i, &ports[i].bytes), "tell a port's size");
        cuda(cuMemAlloc(&ports[i].memory, ports[i].bytes), "allocate memory");
        wpk(wpk_bind_number(engine, direction, i, ports[i].memory), "bind a port");
    }
    return count;
}

static void fill(const port* input, const char* path)
{
    void* data = calloc(input->bytes, 1);
    require(data != NULL, "fill an input", "no memory");
    if (path != NULL)
    {
        FILE* file = fopen(path, "rb");
        require(file != NULL, "open", path);
        require(fread(data, 1, input->bytes, file) == input->bytes, "read as many bytes as the input has from", path);
        fclose(file);
    }
    cuda(cuMemcpyHtoD(input->memory, data, input->bytes), "copy an input");
    free(data);
}

static void print(const port* output)
{
    void* data = malloc(output->bytes);
    require(data != NULL, "print an output", "no memory");
    cuda(cuMemcpyDtoH(data, output->memory, output->bytes), "copy an output");
    printf("%s: %llu bytes", output->name, (unsigned long long)output->bytes);
    for (size_t i = 0; output->type == WPK_FP32 && i < printed_numbers && i < output->bytes / sizeof(float); ++i)
    {
        printf(" %g", ((const float*)data)[i]);
    }
    printf("\n");
    free(data);
}

int main(int count, char** words)
{
    port inputs[most_ports], outputs[most_ports];
    wpk_engine* engine = NULL;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    require(count >= 2, "start", "usage: run_plan PLAN [FILE...]");

    cuda(cuInit(0), "start CUDA");
    cuda(cuDeviceGet(&device, 0), "find a GPU");
    cuda(cuDevicePrimaryCtxRetain(&context, device), "take the GPU");
    cuda(cuCtxPushCurrent(context), "take the GPU");
    cuda(cuStreamCreate(&stream, CU_STREAM_DEFAULT), "make a stream");

    wpk(wpk_open(words[1], &engine), "open the plan");
    const size_t input_count = bind(engine, WPK_INPUT, inputs);
    const size_t output_count = bind(engine, WPK_OUTPUT, outputs);
    for (size_t i = 0; i < input_count; ++i)
    {
        fill(&inputs[i], i + 2 < (size_t)count ? words[i + 2] : NULL);
    }

    wpk(wpk_capture(engine), "make the plan ready");
    wpk(wpk_run(engine, stream), "run the plan"); /* as often as one likes: nothing is allocated or waited for */
    cuda(cuStreamSynchronize(stream), "finish the run");

    for (size_t i = 0; i < output_count; ++i)
    {
        print(&outputs[i]);
    }
    wpk(wpk_close(engine), "close the plan");
    for (size_t i = 0; i < input_count; ++i)
    {
        cuMemFree(inputs[i].memory);
    }
    for (size_t i = 0; i < output_count; ++i)
    {
        cuMemFree(outputs[i].memory);
    }
    cuStreamDestroy(stream);
    cuCtxPopCurrent(&context);
    cuDevicePrimaryCtxRelease(device);
    return 0;
}
