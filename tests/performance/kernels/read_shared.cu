// Every lane reads one vector of shared memory at a byte offset of its own; a negative offset reads nothing.
#include <wpk/kernels/copies/vector.cuh>

namespace wpk
{

template <int Bytes>
WPK_DEVICE void readShared(unsigned char* y, const int* offsets)
{
    WPK_SHARED(unsigned char, memory);
    const int offset = offsets[threadIdx.x];
    if (offset >= 0)
    {
        const Vector<unsigned char, Bytes> vector = load<unsigned char, Bytes>(memory + offset);
        y[threadIdx.x] = vector[0];
    }
}

} // namespace wpk

WPK_KERNEL(32) read_1(unsigned char* y, const int* offsets)
{
    wpk::readShared<1>(y, offsets);
}
WPK_EXPORT(read_1)

WPK_KERNEL(32) read_2(unsigned char* y, const int* offsets)
{
    wpk::readShared<2>(y, offsets);
}
WPK_EXPORT(read_2)

WPK_KERNEL(32) read_4(unsigned char* y, const int* offsets)
{
    wpk::readShared<4>(y, offsets);
}
WPK_EXPORT(read_4)

WPK_KERNEL(32) read_8(unsigned char* y, const int* offsets)
{
    wpk::readShared<8>(y, offsets);
}
WPK_EXPORT(read_8)

WPK_KERNEL(32) read_16(unsigned char* y, const int* offsets)
{
    wpk::readShared<16>(y, offsets);
}
WPK_EXPORT(read_16)
