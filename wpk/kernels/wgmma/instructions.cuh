// The instructions behind wgmma.cuh, one for each width: a text of PTX names every register of the accumulators.
#pragma once

#include <wpk/kernels/portable.cuh>

#if WPK_ON_GPU
namespace wpk::detail
{

// WPK_REGISTERS_n: the names of the first n registers. WPK_ACCUMULATORS_n: their operands, of floats or of integers.
#define WPK_OF_FLOAT(VALUE) "+f"(VALUE)
#define WPK_OF_INTEGER(VALUE) "+r"(VALUE)
#define WPK_REGISTERS_4 "%0, %1, %2, %3"
#define WPK_ACCUMULATORS_4(OF) OF(d[0]), OF(d[1]), OF(d[2]), OF(d[3])
#define WPK_REGISTERS_8 WPK_REGISTERS_4 ", %4, %5, %6, %7"
#define WPK_REGISTERS_12 WPK_REGISTERS_8 ", %8, %9, %10, %11"
#define WPK_REGISTERS_16 WPK_REGISTERS_12 ", %12, %13, %14, %15"
#define WPK_REGISTERS_20 WPK_REGISTERS_16 ", %16, %17, %18, %19"
#define WPK_REGISTERS_24 WPK_REGISTERS_20 ", %20, %21, %22, %23"
#define WPK_REGISTERS_28 WPK_REGISTERS_24 ", %24, %25, %26, %27"
#define WPK_REGISTERS_32 WPK_REGISTERS_28 ", %28, %29, %30, %31"
#define WPK_REGISTERS_36 WPK_REGISTERS_32 ", %32, %33, %34, %35"
#define WPK_REGISTERS_40 WPK_REGISTERS_36 ", %36, %37, %38, %39"
#define WPK_REGISTERS_44 WPK_REGISTERS_40 ", %40, %41, %42, %43"
#define WPK_REGISTERS_48 WPK_REGISTERS_44 ", %44, %45, %46, %47"
#define WPK_REGISTERS_52 WPK_REGISTERS_48 ", %48, %49, %50, %51"
#define WPK_REGISTERS_56 WPK_REGISTERS_52 ", %52, %53, %54, %55"
#define WPK_REGISTERS_60 WPK_REGISTERS_56 ", %56, %57, %58, %59"
#define WPK_REGISTERS_64 WPK_REGISTERS_60 ", %60, %61, %62, %63"
#define WPK_REGISTERS_68 WPK_REGISTERS_64 ", %64, %65, %66, %67"
#define WPK_REGISTERS_72 WPK_REGISTERS_68 ", %68, %69, %70, %71"
#define WPK_REGISTERS_76 WPK_REGISTERS_72 ", %72, %73, %74, %75"
#define WPK_REGISTERS_80 WPK_REGISTERS_76 ", %76, %77, %78, %79"
#define WPK_REGISTERS_84 WPK_REGISTERS_80 ", %80, %81, %82, %83"
#define WPK_REGISTERS_88 WPK_REGISTERS_84 ", %84, %85, %86, %87"
#define WPK_REGISTERS_92 WPK_REGISTERS_88 ", %88, %89, %90, %91"
#define WPK_REGISTERS_96 WPK_REGISTERS_92 ", %92, %93, %94, %95"
#define WPK_REGISTERS_100 WPK_REGISTERS_96 ", %96, %97, %98, %99"
#define WPK_REGISTERS_104 WPK_REGISTERS_100 ", %100, %101, %102, %103"
#define WPK_REGISTERS_108 WPK_REGISTERS_104 ", %104, %105, %106, %107"
#define WPK_REGISTERS_112 WPK_REGISTERS_108 ", %108, %109, %110, %111"
#define WPK_REGISTERS_116 WPK_REGISTERS_112 ", %112, %113, %114, %115"
#define WPK_REGISTERS_120 WPK_REGISTERS_116 ", %116, %117, %118, %119"
#define WPK_REGISTERS_124 WPK_REGISTERS_120 ", %120, %121, %122, %123"
#define WPK_REGISTERS_128 WPK_REGISTERS_124 ", %124, %125, %126, %127"
#define WPK_ACCUMULATORS_8(OF) WPK_ACCUMULATORS_4(OF), OF(d[4]), OF(d[5]), OF(d[6]), OF(d[7])
#define WPK_ACCUMULATORS_12(OF) WPK_ACCUMULATORS_8(OF), OF(d[8]), OF(d[9]), OF(d[10]), OF(d[11])
#define WPK_ACCUMULATORS_16(OF) WPK_ACCUMULATORS_12(OF), OF(d[12]), OF(d[13]), OF(d[14]), OF(d[15])
#define WPK_ACCUMULATORS_20(OF) WPK_ACCUMULATORS_16(OF), OF(d[16]), OF(d[17]), OF(d[18]), OF(d[19])
#define WPK_ACCUMULATORS_24(OF) WPK_ACCUMULATORS_20(OF), OF(d[20]), OF(d[21]), OF(d[22]), OF(d[23])
#define WPK_ACCUMULATORS_28(OF) WPK_ACCUMULATORS_24(OF), OF(d[24]), OF(d[25]), OF(d[26]), OF(d[27])
#define WPK_ACCUMULATORS_32(OF) WPK_ACCUMULATORS_28(OF), OF(d[28]), OF(d[29]), OF(d[30]), OF(d[31])
#define WPK_ACCUMULATORS_36(OF) WPK_ACCUMULATORS_32(OF), OF(d[32]), OF(d[33]), OF(d[34]), OF(d[35])
#define WPK_ACCUMULATORS_40(OF) WPK_ACCUMULATORS_36(OF), OF(d[36]), OF(d[37]), OF(d[38]), OF(d[39])
#define WPK_ACCUMULATORS_44(OF) WPK_ACCUMULATORS_40(OF), OF(d[40]), OF(d[41]), OF(d[42]), OF(d[43])
#define WPK_ACCUMULATORS_48(OF) WPK_ACCUMULATORS_44(OF), OF(d[44]), OF(d[45]), OF(d[46]), OF(d[47])
#define WPK_ACCUMULATORS_52(OF) WPK_ACCUMULATORS_48(OF), OF(d[48]), OF(d[49]), OF(d[50]), OF(d[51])
#define WPK_ACCUMULATORS_56(OF) WPK_ACCUMULATORS_52(OF), OF(d[52]), OF(d[53]), OF(d[54]), OF(d[55])
#define WPK_ACCUMULATORS_60(OF) WPK_ACCUMULATORS_56(OF), OF(d[56]), OF(d[57]), OF(d[58]), OF(d[59])
#define WPK_ACCUMULATORS_64(OF) WPK_ACCUMULATORS_60(OF), OF(d[60]), OF(d[61]), OF(d[62]), OF(d[63])
#define WPK_ACCUMULATORS_68(OF) WPK_ACCUMULATORS_64(OF), OF(d[64]), OF(d[65]), OF(d[66]), OF(d[67])
#define WPK_ACCUMULATORS_72(OF) WPK_ACCUMULATORS_68(OF), OF(d[68]), OF(d[69]), OF(d[70]), OF(d[71])
#define WPK_ACCUMULATORS_76(OF) WPK_ACCUMULATORS_72(OF), OF(d[72]), OF(d[73]), OF(d[74]), OF(d[75])
#define WPK_ACCUMULATORS_80(OF) WPK_ACCUMULATORS_76(OF), OF(d[76]), OF(d[77]), OF(d[78]), OF(d[79])
#define WPK_ACCUMULATORS_84(OF) WPK_ACCUMULATORS_80(OF), OF(d[80]), OF(d[81]), OF(d[82]), OF(d[83])
#define WPK_ACCUMULATORS_88(OF) WPK_ACCUMULATORS_84(OF), OF(d[84]), OF(d[85]), OF(d[86]), OF(d[87])
#define WPK_ACCUMULATORS_92(OF) WPK_ACCUMULATORS_88(OF), OF(d[88]), OF(d[89]), OF(d[90]), OF(d[91])
#define WPK_ACCUMULATORS_96(OF) WPK_ACCUMULATORS_92(OF), OF(d[92]), OF(d[93]), OF(d[94]), OF(d[95])
#define WPK_ACCUMULATORS_100(OF) WPK_ACCUMULATORS_96(OF), OF(d[96]), OF(d[97]), OF(d[98]), OF(d[99])
#define WPK_ACCUMULATORS_104(OF) WPK_ACCUMULATORS_100(OF), OF(d[100]), OF(d[101]), OF(d[102]), OF(d[103])
#define WPK_ACCUMULATORS_108(OF) WPK_ACCUMULATORS_104(OF), OF(d[104]), OF(d[105]), OF(d[106]), OF(d[107])
#define WPK_ACCUMULATORS_112(OF) WPK_ACCUMULATORS_108(OF), OF(d[108]), OF(d[109]), OF(d[110]), OF(d[111])
#define WPK_ACCUMULATORS_116(OF) WPK_ACCUMULATORS_112(OF), OF(d[112]), OF(d[113]), OF(d[114]), OF(d[115])
#define WPK_ACCUMULATORS_120(OF) WPK_ACCUMULATORS_116(OF), OF(d[116]), OF(d[117]), OF(d[118]), OF(d[119])
#define WPK_ACCUMULATORS_124(OF) WPK_ACCUMULATORS_120(OF), OF(d[120]), OF(d[121]), OF(d[122]), OF(d[123])
#define WPK_ACCUMULATORS_128(OF) WPK_ACCUMULATORS_124(OF), OF(d[124]), OF(d[125]), OF(d[126]), OF(d[127])

template <int Count>
struct WgmmaInstruction;

// P0.. are the numbers of the operands behind the accumulators. Kind says types and layouts, as text.
#define WPK_WGMMA(COLUMNS, COUNT, P0, P1, P2, P3, P4, P5, P6, P7)                                        \
    template <>                                                                                          \
    struct WgmmaInstruction<COUNT>                                                                       \
    {                                                                                                    \
        template <class Kind>                                                                            \
        static WPK_DEVICE void run(float (&d)[COUNT], uint64 a, uint64 b, int accumulate)                \
        {                                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P2 ", 0;\n"                                \
                         "wgmma.mma_async.sync.aligned.m64n" COLUMNS "%" P3 " {" WPK_REGISTERS_##COUNT   \
                "}, %" P0 ", %" P1 ", p, 1, 1%" P4 ";\n}"                                                \
                : WPK_ACCUMULATORS_##COUNT(WPK_OF_FLOAT)                                                 \
                : "l"(a), "l"(b), "r"(accumulate), "C"(Kind::types), "C"(Kind::majors));                 \
        }                                                                                                \
        template <class Kind>                                                                            \
        static WPK_DEVICE void run(float (&d)[COUNT], const uint32 (&a)[4], uint64 b, int accumulate)    \
        {                                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P5 ", 0;\n"                                \
                         "wgmma.mma_async.sync.aligned.m64n" COLUMNS "%" P6 " {" WPK_REGISTERS_##COUNT   \
                "}, {%" P0 ", %" P1 ", %" P2 ", %" P3 "}, %" P4 ", p, 1, 1%" P7 ";\n}"                   \
                : WPK_ACCUMULATORS_##COUNT(WPK_OF_FLOAT)                                                 \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "C"(Kind::types), \
                "C"(Kind::majorOfB));                                                                    \
        }                                                                                                \
        template <class Kind>                                                                            \
        static WPK_DEVICE void run(int32 (&d)[COUNT], uint64 a, uint64 b, int accumulate)                \
        {                                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P2 ", 0;\n"                                \
                         "wgmma.mma_async.sync.aligned.m64n" COLUMNS "%" P3 " {" WPK_REGISTERS_##COUNT   \
                "}, %" P0 ", %" P1 ", p;\n}"                                                             \
                : WPK_ACCUMULATORS_##COUNT(WPK_OF_INTEGER)                                               \
                : "l"(a), "l"(b), "r"(accumulate), "C"(Kind::types));                                    \
        }                                                                                                \
    };
WPK_WGMMA("8", 4, "4", "5", "6", "7", "8", "9", "10", "11")
WPK_WGMMA("16", 8, "8", "9", "10", "11", "12", "13", "14", "15")
WPK_WGMMA("24", 12, "12", "13", "14", "15", "16", "17", "18", "19")
WPK_WGMMA("32", 16, "16", "17", "18", "19", "20", "21", "22", "23")
WPK_WGMMA("40", 20, "20", "21", "22", "23", "24", "25", "26", "27")
WPK_WGMMA("48", 24, "24", "25", "26", "27", "28", "29", "30", "31")
WPK_WGMMA("56", 28, "28", "29", "30", "31", "32", "33", "34", "35")
WPK_WGMMA("64", 32, "32", "33", "34", "35", "36", "37", "38", "39")
WPK_WGMMA("72", 36, "36", "37", "38", "39", "40", "41", "42", "43")
WPK_WGMMA("80", 40, "40", "41", "42", "43", "44", "45", "46", "47")
WPK_WGMMA("88", 44, "44", "45", "46", "47", "48", "49", "50", "51")
WPK_WGMMA("96", 48, "48", "49", "50", "51", "52", "53", "54", "55")
WPK_WGMMA("104", 52, "52", "53", "54", "55", "56", "57", "58", "59")
WPK_WGMMA("112", 56, "56", "57", "58", "59", "60", "61", "62", "63")
WPK_WGMMA("120", 60, "60", "61", "62", "63", "64", "65", "66", "67")
WPK_WGMMA("128", 64, "64", "65", "66", "67", "68", "69", "70", "71")
WPK_WGMMA("136", 68, "68", "69", "70", "71", "72", "73", "74", "75")
WPK_WGMMA("144", 72, "72", "73", "74", "75", "76", "77", "78", "79")
WPK_WGMMA("152", 76, "76", "77", "78", "79", "80", "81", "82", "83")
WPK_WGMMA("160", 80, "80", "81", "82", "83", "84", "85", "86", "87")
WPK_WGMMA("168", 84, "84", "85", "86", "87", "88", "89", "90", "91")
WPK_WGMMA("176", 88, "88", "89", "90", "91", "92", "93", "94", "95")
WPK_WGMMA("184", 92, "92", "93", "94", "95", "96", "97", "98", "99")
WPK_WGMMA("192", 96, "96", "97", "98", "99", "100", "101", "102", "103")
WPK_WGMMA("200", 100, "100", "101", "102", "103", "104", "105", "106", "107")
WPK_WGMMA("208", 104, "104", "105", "106", "107", "108", "109", "110", "111")
WPK_WGMMA("216", 108, "108", "109", "110", "111", "112", "113", "114", "115")
WPK_WGMMA("224", 112, "112", "113", "114", "115", "116", "117", "118", "119")
WPK_WGMMA("232", 116, "116", "117", "118", "119", "120", "121", "122", "123")
WPK_WGMMA("240", 120, "120", "121", "122", "123", "124", "125", "126", "127")
WPK_WGMMA("248", 124, "124", "125", "126", "127", "128", "129", "130", "131")
WPK_WGMMA("256", 128, "128", "129", "130", "131", "132", "133", "134", "135")
#undef WPK_WGMMA

} // namespace wpk::detail
#endif
